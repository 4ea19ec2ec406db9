"""Requests inside of long messages, and requests in shorthand."""

from __future__ import annotations

import pytest

from toolscout import Scout
from toolscout.discovery.long_messages import condense
from toolscout.discovery.request import correct_typos, understand
from toolscout.models import Query
from toolscout.text import words_of_servers

CHATTER = (
    "Hi all,\n\nthanks for the notes. The numbers were a little lower than last year, and nobody was surprised. Jonas "
    "said that the printer works again. The kitchen was painted, which took three days.\n\n"
    "> On Monday, Priya wrote:\n> Can you delete the old branch before the release?\n\n"
    "2026-03-02 09:14:07 INFO started in 3.2 s\n2026-03-02 09:15:31 ERROR upstream returned 503\n\n"
)
ASK = "Can you create an issue in GitHub for the login bug?"
END = "\n\nBest regards\nAnn"


@pytest.mark.parametrize("times", [2, 12, 200], ids=lambda times: f"{times * len(CHATTER)} characters")
@pytest.mark.parametrize("place", ["first", "middle", "last"])
async def test_a_request_inside_of_a_long_message_finds_its_tool(sample_scout: Scout, times: int, place: str) -> None:
    before = {"first": 0, "middle": times // 2, "last": times}[place]
    message = f"{CHATTER * before}{ASK}\n\n{CHATTER * (times - before)}{END}"[:100_000]
    answer = await sample_scout.search_tools(message, top_k=3)
    assert "github__create_issue" in [match.tool.key for match in answer]


def test_of_a_message_only_the_sentences_that_ask_are_read() -> None:
    assert condense(f"{CHATTER * 2}{ASK}{END}") == ASK


@pytest.mark.parametrize(
    "ask",
    [
        "Hey Tom, could you merge merge request 42 in GitLab?",
        "Sorry to bother you, but please delete the stale branch.",
        "Thanks - now create a Linear issue for the crash.",
    ],
)
def test_a_request_behind_a_greeting_is_read(ask: str) -> None:
    assert condense(f"{CHATTER * 2}{ask}{END}") == ask


def test_a_sentence_that_names_a_server_of_the_caller_is_read_too() -> None:
    told = "The Sanity release for Friday should go live at noon."
    message = f"{CHATTER}Lunch was late on Tuesday. {told} Somebody brought cake.\n\n{CHATTER}"
    assert condense(message) == message
    assert condense(message, ("sanity-mcp-server",)) == told


@pytest.mark.parametrize(
    "text",
    [
        "merge the pull request\n\nand close the issue",
        "You are planning your finances. " + "The savings are 5,000 dollars at 7 percent for ten years. " * 15,
        "\n\n".join(f"Create product number {number} and send its price to the team." for number in range(12)),
    ],
    ids=["a short one", "one with its facts", "one of many needs"],
)
def test_a_long_request_is_read_whole(text: str) -> None:
    assert condense(text) == text


def test_a_message_in_which_nothing_asks_is_read_by_its_beginning_and_end() -> None:
    text = f"Begin {'nothing to see here ' * 200}end"
    assert condense(text) == f"{text[:600]}\n{text[-600:]}"


@pytest.mark.parametrize("text", ["", "\n\n" * 5_000, "." * 5_000, "> quoted\n\n" * 500, "\ud800" * 2_000])
def test_odd_messages_are_read_without_an_error(text: str) -> None:
    understand(Query(text=text))


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("lst opn pll rqsts in gthub", "github__list_pull_requests"),
        ("crt an issue in gihtub", "github__create_issue"),
        ("snd an emial to ann", "gmail__send_email"),
    ],
)
async def test_a_request_in_shorthand_is_spelled_out(sample_scout: Scout, query: str, key: str) -> None:
    answer = await sample_scout.search_tools(query, top_k=3)
    assert key in [match.tool.key for match in answer]


def test_a_short_word_is_not_taken_for_the_misspelt_name_of_a_server() -> None:
    assert words_of_servers(("line-bot", "launchdarkly-mcp-server")) == {"launchdarkly"}


def test_an_acronym_that_no_tool_has_stays_as_it_is() -> None:
    request = understand(Query(text="show the sql of the crm"))
    assert correct_typos(request, ["sql", "crm"], ["sail", "show", "sell"]) == request
