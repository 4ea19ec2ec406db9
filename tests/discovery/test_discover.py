"""`discover_tools`: which tools go into one turn of a chat."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from toolscout import EmptyQueryError, InvalidValueError, Scout, Settings
from toolscout.discovery.chat_turn import FEW
from toolscout.errors import EmbedderError, StoreError
from toolscout.storage.sqlite.store import SqliteStore
from toolscout.text import count_tokens

CORE = ("calendar__create_event", "mail__send_email")


def row(server: str, name: str, description: str, **fields: Any) -> dict[str, Any]:
    return {"server": server, "name": name, "description": description, **fields}


ROWS = [
    row("mail", "send_email", "Send an email to one or more people."),
    row("mail", "search_inbox", "Search the inbox for messages."),
    row("github", "list_issues", "List the open issues of a GitHub repository."),
    row("github", "create_issue", "Open a new issue in a GitHub repository."),
    row("github", "merge_pull_request", "Merge a pull request of a repository."),
    row("calendar", "create_event", "Put an event into the calendar."),
    row("weather", "forecast", "Get the weather forecast for a city."),
    row("music", "play_song", "Play a song on the speakers."),
    row("maps", "route", "Find the route between two places."),
    row("bank", "transfer_money", "Transfer money to another account."),
    row("photos", "rotate_photo", "Rotate a photo by some degrees."),
    row("docs", "export_pdf", "Export a document as a PDF file."),
]


@pytest.fixture
async def scout(open_scout: Callable[..., Scout]) -> AsyncIterator[Scout]:
    async with open_scout(ROWS, core=CORE) as opened:
        yield opened


def keys(found: Any) -> list[str]:
    return [item.tool.key for item in found]


async def test_the_right_tool_comes_first_and_core_tools_last_each_with_its_source(scout: Scout) -> None:
    found = await scout.discover_tools("what is the weather in Oslo?", limit=1)
    assert found[0].tool.key == "weather__forecast"
    assert (found[0].source, found[0].similarity > 0.3) == ("semantic", True)
    assert [(item.tool.key, item.source) for item in found][-2:] == [(key, "core") for key in CORE]
    assert (found.total_searched, found.embedding_generated, found.degraded) == (12, True, None)
    assert found.search_duration_ms > 0


async def test_a_core_tool_that_is_found_is_there_once_as_found(scout: Scout) -> None:
    found = await scout.discover_tools("send an email to the team", limit=2)
    assert keys(found).count("mail__send_email") == 1
    assert (found[0].tool.key, found[0].source) == ("mail__send_email", "semantic")


async def test_core_tools_can_be_left_out(scout: Scout) -> None:
    found = await scout.discover_tools("play a song", limit=1, include_core_tools=False)
    assert keys(found) == ["music__play_song"]


async def test_the_limit_counts_what_is_found_and_the_whole_is_bounded(open_scout: Callable[..., Scout]) -> None:
    settings = Settings(turn_tools=4)
    async with open_scout(ROWS, core=CORE, settings=settings) as scout:
        found = await scout.discover_tools("issue in a repository", limit=4, similarity_threshold=-1)
        assert [item.source for item in found] == ["semantic", "semantic", "core", "core"]
        for limit in (8, 200):
            more = await scout.discover_tools("issue in a repository", limit=limit, similarity_threshold=-1)
            assert keys(more) == keys(found)
        with pytest.raises(InvalidValueError, match="limit is 0"):
            await scout.discover_tools("issue", limit=0)


async def test_one_core_tool_may_be_given_as_a_plain_text(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS, core="mail__send_email") as scout:
        assert keys(await scout.discover_tools("play a song", limit=1)) == ["music__play_song", "mail__send_email"]


async def test_a_number_as_threshold_is_compared_with_the_cosine(scout: Scout) -> None:
    everything = await scout.discover_tools("weather", limit=8, similarity_threshold=-1, include_core_tools=False)
    assert len(everything) == 8
    some = await scout.discover_tools("weather", limit=8, similarity_threshold=0.3, include_core_tools=False)
    assert 0 < len(some) < 8
    assert all(item.similarity >= 0.3 for item in some)
    with pytest.raises(InvalidValueError, match="cosine from -1 to 1"):
        await scout.discover_tools("weather", similarity_threshold=30)
    with pytest.raises(InvalidValueError, match="not 'high'"):
        await scout.discover_tools("weather", similarity_threshold="high")  # type: ignore[arg-type]


async def test_without_vectors_a_cosine_as_threshold_hides_nothing(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS, embedder=None, settings=Settings(embedder="none")) as scout:
        found = await scout.discover_tools("weather forecast", similarity_threshold=0.3)
        assert keys(found) == keys(await scout.discover_tools("weather forecast"))
        assert found[0].tool.key == "weather__forecast"
        assert "words alone" in (found.degraded or "")


async def test_a_request_that_nothing_fits_gets_the_core_tools_and_a_few_weak_ones(scout: Scout) -> None:
    found = await scout.discover_tools("xyzzy plugh frobnicate")
    assert set(CORE) < set(keys(found))
    assert len(found) == len(CORE) + FEW


async def test_servers_narrow_the_search_and_the_count(scout: Scout) -> None:
    found = await scout.discover_tools(
        "open an issue", server_ids=["github"], include_core_tools=False, similarity_threshold=-1
    )
    assert {item.tool.server for item in found} == {"github"}
    assert found.total_searched == 3


async def test_a_server_that_is_not_there_narrows_to_the_others(scout: Scout) -> None:
    found = await scout.discover_tools("open an issue", server_ids=["github", "gone"], include_core_tools=False)
    assert {item.tool.server for item in found} == {"github"}
    assert not await scout.discover_tools("open an issue", server_ids=["gone"], include_core_tools=False)


async def test_no_server_at_all_gives_the_core_tools_alone(scout: Scout) -> None:
    found = await scout.discover_tools("open an issue", server_ids=[])
    assert (keys(found), found.total_searched, found.embedding_generated) == (list(CORE), 0, False)


CONVERSATION = [
    {"role": "user", "content": "Which issues are open in our GitHub repository?"},
    {"role": "assistant", "content": "Twelve issues are open."},
]


async def test_a_follow_up_finds_its_own_tool_first_and_still_ranks_the_subjects_tools(scout: Scout) -> None:
    found = await scout.discover_tools(
        "now email it to the team", messages=CONVERSATION, limit=4, include_core_tools=False
    )
    assert found[0].tool.key == "mail__send_email"
    assert "github__list_issues" in keys(found)
    alone = await scout.discover_tools("now email it to the team", limit=1, include_core_tools=False)
    assert keys(alone) == ["mail__send_email"]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": [{"type": "text", "text": "Play a song for me"}, {"type": "image_url"}]}],
        [
            {"role": "user", "content": [{"type": "tool_result", "content": "12"}]},
            {"role": "user", "content": "Play a song"},
        ],
        [SimpleNamespace(role="user", content="Play me a song")],
        [{"role": "user", "content": "play a song"}, {"role": "user", "content": "again"}],
    ],
    ids=["openai parts", "anthropic parts", "objects", "the query among the messages"],
)
async def test_a_follow_up_that_says_nothing_by_itself_stands_on_the_conversation(
    scout: Scout, messages: list[Any]
) -> None:
    found = await scout.discover_tools("again", messages=messages, include_core_tools=False)
    assert found[0].tool.key == "music__play_song"


async def test_the_request_among_the_messages_is_known_however_long_it_is(scout: Scout) -> None:
    long = f"play a song {'and so on ' * 200}"
    messages = [{"role": "user", "content": text} for text in ("rotate a photo", "forecast the weather", long)]
    found = await scout.discover_tools(long, messages=messages, include_core_tools=False)
    assert {"photos__rotate_photo", "weather__forecast"} <= set(keys(found))


async def test_messages_are_left_out_where_one_call_may_carry_one_query(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS, settings=Settings(max_queries=1)) as scout:
        found = await scout.discover_tools("play a song", messages=CONVERSATION)
        assert found[0].tool.key == "music__play_song"


async def test_an_empty_query_is_refused_unless_the_conversation_says_something(scout: Scout) -> None:
    with pytest.raises(EmptyQueryError, match="neither the query nor the messages"):
        await scout.discover_tools("  ", messages=[{"role": "user", "content": ""}])
    found = await scout.discover_tools("", messages=[{"role": "user", "content": "rotate a photo"}])
    assert found[0].tool.key == "photos__rotate_photo"


async def test_a_message_longer_than_a_query_may_be_is_read_at_both_ends(scout: Scout) -> None:
    noise = "lorem ipsum " * 5_000
    found = await scout.discover_tools(f"play a song. {noise} play a song", similarity_threshold=-1)
    assert "music__play_song" in keys(found)


async def test_a_budget_is_kept_and_core_tools_come_first_in_it(scout: Scout) -> None:
    free = await scout.discover_tools("open an issue in a repository", similarity_threshold=-1)
    assert free.tokens + free.tokens_saved >= free.tokens > 0
    tight = await scout.discover_tools("open an issue in a repository", similarity_threshold=-1, max_tokens=150)
    assert set(CORE) < set(keys(tight))
    for shown in (tight.openai_tools(), tight.anthropic_tools()):
        assert count_tokens(shown) <= tight.tokens <= 150
    with pytest.raises(InvalidValueError, match="max_tokens"):
        await scout.discover_tools("issue", max_tokens=0)


async def test_when_the_embedder_is_down_words_decide_and_that_is_said(open_scout: Callable[..., Scout]) -> None:
    class Down:
        model_id, dimension = "down", 4

        async def embed_documents(self, documents: Any, progress: Any = None) -> Any:
            raise EmbedderError("the embedder is down")

        async def embed_queries(self, texts: Any) -> Any:
            raise EmbedderError("the embedder is down")

        async def close(self) -> None: ...

    async with open_scout(ROWS, embedder=Down()) as scout:
        found = await scout.discover_tools("weather forecast")
        assert found[0].tool.key == "weather__forecast"
        assert (found[0].source, found.embedding_generated) == ("semantic", False)
        assert "down" in (found.degraded or "")


async def test_when_searching_fails_the_fallback_is_core_tools_then_the_first_by_key_marked(
    scout: Scout, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        raise StoreError("the index is gone")

    monkeypatch.setattr(SqliteStore, "candidates", broken)
    found = await scout.discover_tools("weather forecast", limit=4)
    assert keys(found) == [*CORE, "bank__transfer_money", "docs__export_pdf"]
    assert {item.source for item in found} == {"fallback"}
    assert found.embedding_generated is False
    assert "searching failed" in (found.degraded or "")


@pytest.mark.parametrize("mode", ["off", "shadow"])
async def test_off_and_shadow_give_every_tool(
    open_scout: Callable[..., Scout], mode: Literal["off", "shadow"], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolscout.events")
    async with open_scout(ROWS, settings=Settings(discovery=mode)) as scout:
        found = await scout.discover_tools("weather forecast")
    assert (len(found), {item.source for item in found}, found.tokens_saved) == (12, {"all"}, 0)
    events = [vars(record)["fields"] for record in caplog.records if getattr(record, "event", "") == "tools.selected"]
    assert [event["tools"][0]["key"] for event in events] == ([] if mode == "off" else ["weather__forecast"])


async def test_a_shadow_disturbs_nobody_also_when_there_is_nothing_to_go_by(
    open_scout: Callable[..., Scout], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolscout.events")
    async with open_scout(ROWS, settings=Settings(discovery="shadow")) as scout:
        assert len(await scout.discover_tools("")) == 12
    [event] = [vars(record)["fields"] for record in caplog.records if getattr(record, "event", "") == "tools.selected"]
    assert "neither the query nor the messages" in event["degraded"]


async def test_what_was_chosen_is_logged_without_the_users_text(scout: Scout, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolscout.events")
    await scout.discover_tools("my secret weather", user_id="ann")
    [record] = [record for record in caplog.records if getattr(record, "event", "") == "tools.selected"]
    told = json.loads(record.getMessage())
    assert (told["user"], told["mode"], told["query"]) == ("ann", "on", {"chars": 17})
    assert told["tools"][0] == {
        "key": "weather__forecast",
        "source": "semantic",
        "similarity": pytest.approx(told["tools"][0]["similarity"]),
    }
    assert "secret" not in record.getMessage()


async def test_the_users_text_is_logged_where_that_is_asked_for(
    open_scout: Callable[..., Scout], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolscout.events")
    async with open_scout(ROWS, settings=Settings(log_queries=True)) as scout:
        await scout.discover_tools("weather")
    assert any('"text":"weather"' in record.getMessage() for record in caplog.records)
