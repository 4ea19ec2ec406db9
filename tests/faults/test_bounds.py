"""Definitions without measure: each is dropped with a reason, the rest is indexed, and nothing is fetched."""

from __future__ import annotations

import os
import socket
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Scout, Settings

pytestmark = guarantee("catalog:bounds")

GOOD = [{"name": f"good_{number}", "description": "Count sheep"} for number in range(3)]


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"deeper": schema}}
    return schema


def endless() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"again": schema}
    return schema


def wide(size: int) -> dict[str, Any]:
    properties = {f"field_{number}": {"type": "string", "description": "x" * 80} for number in range(size // 120)}
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"input_schema": wide(5_000_000)}, "bytes, over 262,144"),
        ({"output_schema": wide(5_000_000)}, "bytes, over 262,144"),
        ({"input_schema": nested(5_000)}, "nested deeper than 32 levels"),
        ({"annotations": nested(5_000)}, "nested deeper than 32 levels"),
        ({"input_schema": endless()}, "nested deeper than 32 levels"),
        ({"description": "x" * 5_000_000}, "characters, over 32,768"),
        ({"name": "x" * 5_000}, "its name has 5,000 characters"),
    ],
    ids=["input", "output", "depth", "depth elsewhere", "holds itself", "description", "name"],
)
async def test_what_is_out_of_bounds_is_dropped_with_the_reason_and_the_rest_is_indexed(
    bad: dict[str, Any], reason: str
) -> None:
    async with Scout.open(store="memory:", embedder=HashEmbedder()) as scout:
        report = await scout.index_tools([GOOD[0], {"name": "bad", **bad}, *GOOD[1:]])
        assert report.new == 3
        assert len(report.dropped) == 1
        assert reason in report.dropped[0].reason
        assert len(report.dropped[0].where) < 200
        assert [match.tool.name for match in await scout.list_tools()] == [row["name"] for row in GOOD]


async def test_huge_definitions_leave_nothing_behind_in_memory() -> None:
    size = 5_000_000
    rows = [{"name": f"huge_{n}", "input_schema": {"type": "object", "title": str(n) * size}} for n in range(10)]
    async with Scout.open(store="memory:", embedder=HashEmbedder()) as scout:
        await scout.index_tools(GOOD)
        tracemalloc.start()
        try:
            report = await scout.index_tools([*rows, *GOOD])
            left, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (report.unchanged, len(report.dropped)) == (3, 10)
    assert left < size, "more than one of ten is still held"
    assert peak < 6 * size, "all ten were held at once"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Listen on loopback, so that whoever follows a reference is seen."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.setblocking(False)
        yield made


async def test_references_are_kept_as_they_are_and_never_followed(listener: socket.socket) -> None:
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
    schema = {
        "type": "object",
        "properties": {
            "remote": {"$ref": address},
            "loop": {"$ref": "#/$defs/a"},
            "gone": {"$ref": "#/$defs/nothing"},
            "file": {"$ref": "file:///etc/passwd"},
        },
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "$schema": address,
    }
    row = {"name": "refer", "description": "Follow me", "input_schema": schema, "output_schema": {"$ref": address}}
    async with Scout.open(tools=[row], embedder=HashEmbedder()) as scout:
        found = await scout.search_tools("follow me remote loop", detail="full", max_tokens=2_000)
        assert found[0].tool.input_schema == schema
        assert (await scout.get_tool_details("local__refer"))[0].tool.output_schema == {"$ref": address}
    with pytest.raises(BlockingIOError):
        listener.accept()


async def test_a_server_with_too_many_tools_keeps_the_first_and_says_so() -> None:
    settings = Settings(max_tools=500)
    rows = [{"name": f"tool_{number:06}", "server": "huge"} for number in range(100_000)]
    async with Scout.open(store="memory:", embedder=HashEmbedder(), settings=settings) as scout:
        report = await scout.index_tools([*rows, *GOOD])
        assert (report.new, len(report.dropped)) == (503, 1)
        assert "100,000 tools" in report.dropped[0].reason
        listed = await scout.list_tools(server="huge", page=5, page_size=100)
        assert listed[-1].tool.name == "tool_000499"


@pytest.mark.skipif(not os.environ.get("TOOLSCOUT_TEST_SLOW"), reason="takes half a minute: TOOLSCOUT_TEST_SLOW=1")
async def test_a_server_with_a_hundred_thousand_tools_is_indexed_whole() -> None:
    rows = [{"name": f"tool_{number:06}", "server": "huge"} for number in range(100_000)]
    async with Scout.open(store="memory:", settings=Settings(embedder="none")) as scout:
        report = await scout.index_tools(rows)
        assert (report.new, report.dropped) == (100_000, ())
        assert (await scout.search_tools("tool_054321"))[0].tool.name == "tool_054321"
