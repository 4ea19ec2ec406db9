"""Entries are shown without their secrets, and a secret that is sent back as it was shown stays what it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolscout.config.hidden_values import hide_values, restore_values
from toolscout.errors import ConfigError

SECRET = "sesame-5up3r"
ENTRY: dict[str, Any] = {
    "command": "npx",
    "args": [
        "-y",
        "server@1.2",
        f"--api-key={SECRET}",
        "--token",
        SECRET,
        "--header",
        f"Authorization: Bearer {SECRET}",
        f"postgresql://me:{SECRET}@db.example/shop",
        "--log-level",
        "debug",
    ],
    "env": {"API_KEY": SECRET, "MODE": SECRET, "REF": "${env:API_KEY}"},
    "url": f"https://me:{SECRET}@tools.example/mcp?access_token={SECRET}&page=2",
    "headers": {"Authorization": f"Bearer {SECRET}", "X-Team": "Bearer ${env:TEAM}"},
    "toolscout": {
        "oauth": {"client_id": "me", "client_secret": SECRET},
        "users": {"ann": {"headers": {"X-Key": SECRET}, "env": {"A": SECRET}}},
        "trusted": False,
        "tags": ["key", "token"],
        "tools": {"read": {"keywords": ["password reset"]}},
        "timeout_s": 3,
    },
}


def test_no_secret_is_shown_and_everything_else_is():
    shown = hide_values(ENTRY)
    assert SECRET not in json.dumps(shown)
    assert shown["args"][2:9] == [
        "--api-key=***",
        "--token",
        "***",
        "--header",
        "Authorization: ***",
        "postgresql://me:***@db.example/shop",
        "--log-level",
    ]
    assert shown["env"] == {"API_KEY": "***", "MODE": "***", "REF": "${env:API_KEY}"}
    assert shown["url"] == "https://me:***@tools.example/mcp?access_token=***&page=2"
    assert shown["headers"]["X-Team"] == "Bearer ${env:TEAM}"
    assert shown["toolscout"]["oauth"] == {"client_id": "me", "client_secret": "***"}
    for name in ("trusted", "tags", "tools", "timeout_s"):
        assert shown["toolscout"][name] == ENTRY["toolscout"][name]


def test_what_is_sent_back_as_it_was_shown_is_restored():
    assert restore_values(hide_values(ENTRY), ENTRY) == ENTRY
    edited = hide_values(ENTRY)
    edited["command"] = "uvx"
    edited["env"]["MODE"] = "test"
    edited["args"].append("--quiet")
    restored = restore_values(edited, ENTRY)
    assert (restored["command"], restored["env"]["MODE"], restored["env"]["API_KEY"]) == ("uvx", "test", SECRET)
    assert restored["args"] == [*ENTRY["args"], "--quiet"]


@pytest.mark.parametrize(
    "entry",
    [
        {"env": {"NEW": "***"}},
        {"url": "https://me:***@evil.example/mcp"},
        {"args": ["--token", "***"]},
        {"headers": {"Authorization": "Bearer ***"}},
        {"deep": {"list": [{"of": "***"}]}},
    ],
)
def test_a_hidden_value_in_another_place_is_refused(entry):
    with pytest.raises(ConfigError, match="hidden value"):
        restore_values(entry, ENTRY)
