"""The gateway's own answers keep to the byte limit of results, and say what they leave out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guarantees import guarantee
from raw_client import raw_client
from scripted import Scripted
from toolscout import Scout
from toolscout.gateway.answer_limit import fit_answer
from toolscout.sample import path
from toolscout.settings import Settings

pytestmark = [pytest.mark.process, guarantee("fault:huge")]

LIMIT = 40_000
SETTINGS = Settings(reindex_interval_s=0.05, max_result_bytes=LIMIT)


@pytest.fixture
def wordy() -> Scripted:
    """Return a server whose definitions are long: a list of them, and one whose parameters are as good as endless."""
    server = Scripted("wordy")
    for number in range(30):
        quoted = {"type": "object", "properties": {"text": {"type": "string", "description": '"\u4e2d' * 600}}}
        server.tool(f"tool{number:02}", description="Write words to a page", inputSchema=quoted)
    names = [f"parameter_{number}" for number in range(1_500)]
    every = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    server.tool("wide", description="Widen something", inputSchema=every)
    return server


async def answered(client: Any, tool: str, **arguments: Any) -> Any:
    got = await client.request("tools/call", {"name": tool, "arguments": arguments})
    assert len(json.dumps(got, ensure_ascii=False, separators=(",", ":")).encode()) <= LIMIT + 500
    return got


KEYS = [f"wordy__tool{number:02}" for number in range(30)]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_tool_details", {"names": KEYS}),
        ("list_tools", {"detail": "full"}),
        ("search_tools", {"query": "write words", "detail": "full", "limit": 30, "max_tokens": 1_000_000}),
        ("search_tools", {"query": ["words", "page"], "detail": "full", "limit": 30, "max_tokens": 1_000_000}),
    ],
)
async def test_definitions_that_do_not_fit_are_shown_in_less_detail(open_gateway, wordy, tool, arguments):
    async with (
        open_gateway(wordy, settings=SETTINGS, surface="browse") as opened,
        raw_client(opened.server, "2026-07-28") as client,
    ):
        got = await answered(client, tool, **arguments)
    for answer in got["structuredContent"].get("results") or [got["structuredContent"]]:
        shown = answer["tools"]
        full = ["input_schema" in hit for hit in shown]
        assert full[0] and not full[-1] and full == sorted(full, reverse=True)
        less = f"{len(shown) - sum(full)} of {len(shown)} definitions are shown in less detail"
        assert any(less in line for line in answer["suggestions"])
        assert less in got["content"][0]["text"]
        assert answer["metadata"]["returned"] == len(shown)
        assert answer["metadata"]["tokens"] < LIMIT


async def test_hits_that_do_not_fit_even_by_name_are_counted_as_left_out():
    async with Scout.open(tools=path(), settings=Settings(embedder="none")) as scout:
        listed = await scout.list_tools("full", page_size=100)
    shown = fit_answer(listed, 9_000)
    assert 0 < len(shown) < len(listed) == 100
    assert shown.suggestions[0].startswith(f"{100 - len(shown)} of 100 hits are left out and ")
    assert "minimal" in {match.detail for match in shown}


async def test_definitions_that_fit_are_all_shown(open_gateway, wordy):
    async with (
        open_gateway(wordy, settings=SETTINGS) as opened,
        raw_client(opened.server, "2026-07-28") as client,
    ):
        got = await answered(client, "get_tool_details", names=KEYS[:2])
    assert all("input_schema" in hit for hit in got["structuredContent"]["tools"])
    assert "suggestions" not in got["structuredContent"]


async def test_a_definition_that_alone_is_too_long_still_has_its_signature(open_gateway, wordy):
    async with (
        open_gateway(wordy, settings=SETTINGS) as opened,
        raw_client(opened.server, "2026-07-28") as client,
    ):
        got = await answered(client, "get_tool_details", names="wordy__wide")
    [hit] = got["structuredContent"]["tools"]
    assert "parameter_0: string" in hit["signature"]
    assert "input_schema" not in hit


async def test_an_error_for_wrong_arguments_keeps_to_the_limit(open_gateway, wordy):
    async with (
        open_gateway(wordy, settings=SETTINGS) as opened,
        raw_client(opened.server, "2026-07-28") as client,
    ):
        got = await answered(client, "call_tool", name="wordy__wide", arguments={})
    error = got["structuredContent"]["error"]
    assert "'parameter_0', 'parameter_1'" in error["message"]
    assert "1480 more is missing" in error["message"]
    assert "details" in error and "left_out" in error["details"]
    assert json.loads(got["content"][0]["text"]) == got["structuredContent"]


@pytest.mark.parametrize("tool", ["intelligent_tool_finder", "search_registry_tools", "tool_search"])
async def test_answers_in_the_shape_of_other_systems_leave_out_the_last_hits(open_gateway, wordy, tool):
    query = {"natural_language_query": "write words", "top_n_tools": 30} if tool == "intelligent_tool_finder" else {}
    async with (
        open_gateway(wordy, settings=SETTINGS, surface="registry") as opened,
        raw_client(opened.server, "2026-07-28") as client,
    ):
        got = await answered(client, tool, **(query or {"query": "write words", "max_results": 30}))
    assert got["structuredContent"]["result"]
    assert "hits are left out" in got["content"][-1]["text"]
