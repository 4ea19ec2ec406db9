"""Providers of every kind, their precedence, and failures that affect only their own tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tool_providers import (
    CITY,
    Api,
    AsyncGenerator,
    Failing,
    Folder,
    Generator,
    endless,
    leaves,
    raises,
)
from toolscout import CallError, CallTimeoutError, InvalidValueError, ToolMetadata, ToolNotFoundError, request_providers

WEATHER = {"weather_now": "Current weather of a city", "weather_week": "Weather of a city for a week"}
TRAINS = {"next_train": "When the next train leaves a city"}


def names(answer):
    return [match.tool.name for match in answer]


def text(result):
    return result.content[0].text


KINDS: dict[str, Callable[..., Any]] = {
    "synchronous": Folder,
    "asynchronous": lambda tools: Api(Folder(tools)),
    "generator": Generator,
    "asynchronous generator": AsyncGenerator,
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_provider_may_be_synchronous_or_asynchronous(kind, registry):
    registry.add_provider(KINDS[kind](WEATHER))
    answer = await registry.search("will it rain in town today", limit=2)
    assert names(answer)[0] in WEATHER
    assert answer[0].tool.input_schema == CITY
    assert text(await registry.call_tool("weather_now", {"city": "Ulm"})) == "folder: weather_now in Ulm"
    assert await registry.get_tool("weather_never") is None
    assert registry.problems == []


async def test_definitions_are_read_only_for_hits(make_registry):
    registry, folder = make_registry(), Folder({f"tool_{number}": "Thing" for number in range(100)})
    registry.add_provider(folder)
    await registry.search("tool_7", ranker="fuzzy", limit=3)
    assert len([call for call in folder.calls if call[0] == "get"]) == 3


async def test_keywords_of_metadata_are_searched(make_registry):
    registry = make_registry()
    registry.add_provider(Generator({"a_tool": "Thing"}))
    answer = await registry.search("generated", ranker="fuzzy")
    assert [(match.tool.name, match.score) for match in answer] == [("a_tool", 0.85)]


async def test_registered_tools_win_and_then_the_provider_that_came_first(registry):
    first = Folder({"sql_query": "Other", "shared": "From the first"}, name="first")
    second = Folder({"shared": "From the second", "alone": "Of the second"}, name="second")
    for provider in (first, second):
        registry.add_provider(provider)
    for _ in range(3):
        assert text(await registry.call_tool("sql_query", {"query": "x"})) == "executed: x"
        assert text(await registry.call_tool("shared", {"city": "Ulm"})) == "first: shared in Ulm"
        assert text(await registry.call_tool("alone", {"city": "Ulm"})) == "second: alone in Ulm"
        [hit] = [match for match in await registry.search("shared", ranker="fuzzy") if match.tool.name == "shared"]
        assert hit.tool.description == "From the first"
    reports = {(problem.provider, problem.what) for problem in registry.problems}
    assert ("first", "its 'sql_query' is hidden by a registered tool of the same name") in reports
    assert ("second", "its 'shared' is hidden by a tool of first of the same name") in reports
    assert len(registry.problems) == 2


async def test_a_listing_is_cached_and_concurrent_callers_share_one_request(make_registry):
    registry, folder = make_registry(provider_refresh_s=60), Folder(WEATHER)
    registry.add_provider(folder)
    await asyncio.gather(*(registry.search("weather") for _ in range(20)))
    assert [call for call in folder.calls if call[0] == "list"] == [("list", "")]
    folder.tools["tide_now"] = "Tide at a city"
    assert "tide_now" not in names(await registry.search("tide_now", ranker="fuzzy"))
    await registry.refresh()
    assert names(await registry.search("tide_now", ranker="fuzzy"))[0] == "tide_now"


async def test_a_caller_that_is_cancelled_does_not_fail_the_others(make_registry):
    registry, folder = make_registry(), Folder(WEATHER)
    begun, go = asyncio.Event(), asyncio.Event()

    class Slow(Api):
        async def list_tool_metadata(self):
            begun.set()
            await go.wait()
            return self.inner.list_tool_metadata()

    registry.add_provider(Slow(folder))
    first = asyncio.create_task(registry.search("weather", ranker="fuzzy"))
    await begun.wait()
    second = asyncio.create_task(registry.search("weather", ranker="fuzzy"))
    first.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert sorted(names(await second)) == sorted(WEATHER)
    assert registry.problems == []


async def test_an_old_listing_is_read_again(make_registry):
    registry, folder = make_registry(provider_refresh_s=0), Folder(WEATHER)
    registry.add_provider(folder)
    await registry.search("weather")
    folder.tools = {"tide_now": "Tide at a city"}
    assert names(await registry.search("tide weather", ranker="fuzzy")) == ["tide_now"]


async def test_a_tool_that_is_not_listed_yet_can_be_called(make_registry):
    registry, folder, other = make_registry(provider_refresh_s=60), Folder(WEATHER), Folder(TRAINS)
    registry.add_provider(folder)
    registry.add_provider(other)
    await registry.search("weather")
    other.tools["tide_now"] = "Tide at a city"
    assert text(await registry.call_tool("tide_now", {"city": "Kiel"})) == "folder: tide_now in Kiel"


async def test_a_provider_that_is_removed_takes_its_tools_along(registry):
    folder = Folder(WEATHER)
    registry.add_provider(folder)
    assert "weather_now" in names(await registry.search("weather", ranker="fuzzy"))
    assert registry.remove_provider(folder)
    assert not registry.remove_provider(folder)
    assert "weather_now" not in names(await registry.search("weather", ranker="fuzzy"))
    with pytest.raises(ToolNotFoundError):
        await registry.call_tool("weather_now", {"city": "Ulm"})


RUBBISH = {
    "raises": raises,
    "leaves": leaves,
    "None": None,
    "a number": 7,
    "a text": "weather_now",
    "a mapping": {"name": "weather_now"},
    "bad items": [None, 7, {"description": "no name"}, {"name": 5}, {"name": "x", "keywords": [1]}, object()],
}


@pytest.mark.parametrize("answer", RUBBISH.values(), ids=RUBBISH)
async def test_a_provider_that_cannot_list_costs_only_its_own_tools_and_is_reported(answer, registry):
    registry.add_provider(Failing(WEATHER, stage="list", answer=answer))
    registry.add_provider(Folder(TRAINS))
    assert names(await registry.search("send_email", ranker="fuzzy"))[0] == "send_email"
    assert names(await registry.search("next_train", ranker="fuzzy"))[0] == "next_train"
    assert "weather_now" not in names(await registry.search("weather", ranker="fuzzy"))
    assert text(await registry.call_tool("next_train", {"city": "Ulm"})) == "folder: next_train in Ulm"
    assert [problem.provider for problem in registry.problems] == ["failing"]


async def test_a_listing_with_bad_tools_keeps_its_good_ones(registry):
    items = [None, {"name": "good_tool", "description": "Good"}, {"name": "good_tool"}, {"name": "x", "description": 5}]
    registry.add_provider(Failing({"good_tool": "Good"}, stage="list", answer=items))
    assert names(await registry.search("good_tool", ranker="fuzzy", limit=1)) == ["good_tool"]
    [problem] = registry.problems
    assert problem.what.startswith("tool 1: a NoneType without a name; tool 3: 'good_tool' is a duplicate")


async def test_a_listing_that_never_ends_is_cut(make_registry):
    registry = make_registry(max_tools=50)
    registry.add_provider(Failing({}, stage="list", answer=endless))
    assert len(await registry.search("endless", ranker="fuzzy", limit=100)) == 0
    assert len(await registry.list_tool_metadata()) == 50
    assert registry.problems[0].what == "it lists more than 50 tools, and the rest is ignored"


async def test_a_tool_that_cannot_be_indexed_is_reported(make_registry):
    registry = make_registry()
    registry.add_provider(Folder({"x" * 300: "Too long a name", "good_tool": "Good"}))
    with request_providers(Folder({"y" * 300: "Too long a name"})):
        for _ in range(2):
            assert names(await registry.search("good_tool", ranker="fuzzy")) == ["good_tool"]
    assert ["is not searchable: its name has 300" in problem.what for problem in registry.problems] == [True, True]


HANGS = ("blocks", "waits")


@pytest.mark.parametrize("manner", HANGS)
async def test_a_provider_that_hangs_costs_its_deadline_once_and_is_then_left_alone(manner, make_registry, stuck):
    registry = make_registry(provider_timeout_s=0.3, provider_refresh_s=60)
    registry.register_tool({"name": "send_email"}, lambda: "sent")
    hanging = Failing(WEATHER, stage="list", answer=getattr(stuck, manner))
    registry.add_provider(hanging)
    registry.add_provider(Folder(TRAINS))
    assert names(await registry.search("send_email", ranker="fuzzy"))[0] == "send_email"
    began = time.perf_counter()
    for _ in range(20):
        assert text(await registry.call_tool("next_train", {"city": "Ulm"})) == "folder: next_train in Ulm"
    assert time.perf_counter() - began < 10 * 0.3
    assert [(item.provider, item.what) for item in registry.problems] == [
        ("failing", "its tools cannot be listed: OverdueError: no answer within 0.3 s")
    ]


async def test_a_provider_that_recovers_is_back(make_registry):
    registry = make_registry(provider_refresh_s=0)
    failing = Failing(WEATHER, stage="list", answer=raises)
    registry.add_provider(failing)
    assert len(await registry.search("weather", ranker="fuzzy")) == 0
    failing.stage = "never"
    assert len(await registry.search("weather", ranker="fuzzy")) == 2


@pytest.mark.parametrize("answer", [raises, 7, "text", {"inputSchema": "x"}], ids=["raises", "7", "text", "schema"])
async def test_a_definition_that_cannot_be_had_costs_that_tool_alone(answer, registry):
    registry.add_provider(Failing({"send_emails": "Send many"}, stage="get", answer=answer))
    hits = await registry.search("send_email", ranker="fuzzy")
    assert names(hits)[0] == "send_email"
    assert "send_emails" not in names(hits)
    with pytest.raises(CallError, match="its provider failing failed"):
        await registry.call_tool("send_emails", {"city": "Ulm"})
    assert {problem.provider for problem in registry.problems} == {"failing"}


async def test_when_no_hit_has_a_definition_the_answer_says_why(make_registry):
    registry = make_registry()
    registry.add_provider(Failing(WEATHER, stage="get", answer=raises))
    answer = await registry.search("weather", ranker="fuzzy")
    assert (len(answer), answer.suggestions) == (
        0,
        ("Some tools match, but their providers do not answer now.",),
    )


async def test_a_failed_call_is_reported_without_details_for_the_model(registry):
    registry.add_provider(Failing(WEATHER, stage="call", answer=raises))
    result = await registry.execute("weather_now", {"city": "Ulm"})
    assert result.is_error
    assert text(result) == "Error executing tool weather_now"
    assert registry.problems[-1].what == "a call of 'weather_now' failed: RuntimeError: secret detail"


async def test_a_result_that_is_none_is_an_error_of_that_call(registry):
    registry.add_provider(Failing(WEATHER, stage="call", answer={"content": [{"type": "no such"}]}))
    with pytest.raises(CallError, match="its result cannot be read"):
        await registry.call_tool("weather_now", {"city": "Ulm"})
    assert "is not a result" in registry.problems[-1].what


@pytest.mark.parametrize("manner", HANGS)
async def test_a_call_that_hangs_ends_at_its_deadline(manner, make_registry, stuck):
    registry = make_registry(call_timeout_s=0.05)
    registry.add_provider(Failing(WEATHER, stage="call", answer=getattr(stuck, manner)))
    with pytest.raises(CallTimeoutError, match="no answer within"):
        await registry.call_tool("weather_now", {"city": "Ulm"})


async def test_a_tool_that_is_removed_between_listing_and_call_is_not_found(make_registry):
    registry, folder = make_registry(provider_refresh_s=60), Folder(WEATHER)
    registry.add_provider(folder)
    await registry.search("weather")
    del folder.tools["weather_now"]
    with pytest.raises(ToolNotFoundError):
        await registry.call_tool("weather_now", {"city": "Ulm"})


async def test_a_registry_is_itself_a_provider(registry, make_registry):
    outer = make_registry()
    outer.add_provider(registry)
    assert names(await outer.search("write to a colleague by mail", limit=1)) == ["send_email"]
    sent = await outer.call_tool("send_email", {"to": "Ann", "subject": "Hi", "body": ""})
    assert text(sent) == "Hi sent to Ann"
    assert sent.structured_content == {"result": "Hi sent to Ann"}
    assert await outer.get_tool("send_email") == await registry.get_tool("send_email")
    assert await outer.list_tool_metadata() == await registry.list_tool_metadata()
    assert (await registry.list_tool_metadata())[0] == ToolMetadata(
        name="send_email",
        description="Send an email to a recipient.",
        keywords=("email", "smtp", "correspondence"),
    )


async def test_registries_in_a_circle_find_an_end(registry, make_registry):
    other = make_registry(name="other")
    other.register_tool({"name": "other_tool"}, lambda: "other")
    registry.add_provider(other)
    other.add_provider(registry)
    assert text(await registry.call_tool("other_tool")) == "other"
    assert text(await other.call_tool("sql_query", {"query": "x"})) == "executed: x"
    assert "other_tool" in names(await registry.search("other_tool", ranker="fuzzy"))
    for one in (registry, other):
        with pytest.raises(ToolNotFoundError):
            await one.call_tool("absent_everywhere")


def test_what_is_no_provider_is_refused_at_once(registry):
    for wrong in (object(), Folder, "folder"):
        with pytest.raises(InvalidValueError, match="is not a provider"):
            registry.add_provider(wrong)
    with pytest.raises(InvalidValueError, match="its own provider"):
        registry.add_provider(registry)
