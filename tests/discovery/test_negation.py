"""What a request rules out is not searched for."""

from __future__ import annotations

import pytest

from toolscout import Scout
from toolscout.discovery.negation import split_negations
from toolscout.verbs import CREATE, READ, wanted_action


@pytest.mark.parametrize(
    ("text", "rest", "excluded"),
    [
        ("send the email, do not save a draft", "send the email", "do not save a draft"),
        ("list all users, not groups", "list all users", "not groups"),
        ("rename the branch without deleting it", "rename the branch", "without deleting it"),
        (
            "merge the pull request but don't delete the branch",
            "merge the pull request",
            "but don't delete the branch",
        ),
        ("read the file instead of writing it", "read the file", "instead of writing it"),
    ],
)
def test_what_is_ruled_out_is_cut(text: str, rest: str, excluded: str) -> None:
    assert split_negations(text) == (rest, (excluded,))


@pytest.mark.parametrize(
    "text",
    [
        "find files not modified since Monday",
        "list buckets without encryption",
        "show users who never logged in",
        "don't forget the milk",
        'send "sorry, don\'t wait for me" to the general channel on Slack',
        "create a ticket and don't forget to assign it to Bob",
        "show virtual machines without monitoring enabled",
        "Do not use the cache when you fetch the page example.com and summarize it",
        "find hotels, not only in Rome but also in Milan",
        "don't delete it, create it",
        "",
    ],
)
def test_a_condition_and_a_request_that_would_be_left_with_nothing_stay(text: str) -> None:
    assert split_negations(text) == (text, ())


def test_the_action_that_is_refused_is_not_the_one_that_is_wanted() -> None:
    assert wanted_action("don't delete the entity, create it") == CREATE
    assert wanted_action("do not remove anything, list the issues") == READ


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("send the email, do not save a draft", "gmail__send_email"),
        ("don't delete the issue, create it", "github__create_issue"),
    ],
)
async def test_the_tool_that_is_refused_is_not_the_first(sample_scout: Scout, query: str, first: str) -> None:
    assert (await sample_scout.search_tools(query))[0].tool.key == first
