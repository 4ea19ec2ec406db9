"""The policy file: strict about names, with errors that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolscout import PolicyError
from toolscout.policy.policy_file import Limit, Policy, parse_policy, read_policy

WHOLE = """
[[allow]]
name = "engineers use the code tools"
who = ["group:engineering", "user:ann"]
tenant = "acme"
servers = ["github", "jira-*"]
tools = ["*list*", "github__create_issue"]
tags = ["Code"]
categories = ["Development"]

[[allow]]
who = ["anyone"]
may = "see"
read_only = true

[[deny]]
who = ["key:ab12cd34ef"]
tools = ["*delete*"]

[limits]
calls_per_minute = 600
concurrent_calls = 16

[limits.tools]
"bank__*" = { calls_per_minute = 10, concurrent_calls = 1 }
"""


def test_a_whole_file_is_read_into_data() -> None:
    policy = parse_policy(WHOLE, "policy.toml")
    first, second = policy.allow
    assert (first.name, first.tenant, first.may) == ("engineers use the code tools", "acme", "call")
    assert (first.tags, first.categories) == ({"code"}, {"development"})
    assert (second.name, second.may, second.read_only) == ("allow 2", "see", True)
    assert policy.deny[0].may == "see"
    assert policy.caller == Limit(calls_per_minute=600, concurrent_calls=16)
    assert policy.tools == (("bank__*", Limit(calls_per_minute=10, concurrent_calls=1)),)


def test_an_empty_file_allows_nothing() -> None:
    assert parse_policy("") == Policy(source="policy")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[allow]\nwho = 1", "line 1"),
        ('[[allow]]\nwho = ["anyone"]\nserver = ["x"]', "allow 1 has an unknown name 'server'"),
        ("[[allow]]\n[[allow]]", "allow 1 has no `who`"),
        ('[[deny]]\nwho = ["ann"]', "deny 1 has an invalid 'ann' in `who`"),
        ('[[allow]]\nwho = ["user:"]', "'user:'"),
        ('[[allow]]\nwho = "anyone"', "allow 1.who is not a list"),
        ('[[allow]]\nwho = ["anyone"]\nmay = "write"', "may = 'write'"),
        ('[[allow]]\nwho = ["anyone"]\nread_only = "yes"', "wrong type"),
        ('[[allow]]\nwho = ["anyone"]\ntools = [1]', "allow 1.tools"),
        ('[allow]\nwho = ["anyone"]', "not a list of tables"),
        ("[limits]\ncalls_per_minute = 0", "limits.calls_per_minute is 0"),
        ("[limits]\ncalls_per_hour = 1", "unknown name 'calls_per_hour'"),
        ("[limits.tools]\n'x*' = 3", "limits.tools.'x*' is not a table"),
        ("permit = true", "unknown name 'permit'"),
    ],
)
def test_an_error_names_the_table_and_the_field(text: str, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "policy.toml")
    assert said in caught.value.message
    assert "policy.toml" in caught.value.message
    assert caught.value.hint


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"nowhere\.toml"):
        read_policy(tmp_path / "nowhere.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match=r"bad\.toml"):
        read_policy(tmp_path / "bad.toml")
