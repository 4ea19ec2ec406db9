"""Bounds: what is too large or too deep is dropped with its reason, the rest is indexed, and nothing is fetched."""

from __future__ import annotations

import json
import socket
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embedders import HashEmbedder
from guarantees import guarantee
from knobs import SLOW
from toolscout import BadToolError, Scout, Server, Settings
from toolscout.indexing.normalize import canonical_json, normalize_tool

pytestmark = guarantee("catalog:bounds")

SERVER = Server(key="server", title="server")
GOOD = [{"name": f"good_{number}", "description": "Count sheep"} for number in range(3)]


def _open(**options: Any) -> Scout:
    return Scout.open(**{"store": "memory:", "embedder": HashEmbedder(), **options})


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"a": schema}
    return schema


def _of_bytes(count: int) -> dict[str, Any]:
    empty = len(canonical_json({"description": ""}))
    return {"description": "x" * (count - empty)}


@pytest.mark.parametrize("field", ["input_schema", "output_schema"])
def test_a_schema_of_256_kilobytes_is_the_largest(field: str) -> None:
    limit = 256 * 1_024
    assert normalize_tool({"name": "a", field: _of_bytes(limit)}, SERVER, Settings())
    with pytest.raises(BadToolError, match=f"{field} has 262,145 bytes, over 262,144"):
        normalize_tool({"name": "a", field: _of_bytes(limit + 1)}, SERVER, Settings())


def test_bytes_are_counted_and_not_characters() -> None:
    with pytest.raises(BadToolError, match="bytes"):
        normalize_tool({"name": "a", "input_schema": {"description": "漢" * 100_000}}, SERVER, Settings())


@pytest.mark.parametrize("field", ["input_schema", "output_schema"])
def test_thirty_two_levels_are_the_deepest(field: str) -> None:
    assert normalize_tool({"name": "a", field: _nested(32)}, SERVER, Settings())
    with pytest.raises(BadToolError, match=f"{field} is nested 33 levels deep, over 32"):
        normalize_tool({"name": "a", field: _nested(33)}, SERVER, Settings())


@pytest.mark.parametrize("depth", [100, 5_000, 200_000])
def test_a_schema_nested_without_end_is_refused_without_recursion(depth: int) -> None:
    with pytest.raises(BadToolError, match="nested"):
        normalize_tool({"name": "a", "input_schema": _nested(depth)}, SERVER, Settings())


def test_a_definition_nested_beside_its_schemas_is_bounded_too() -> None:
    with pytest.raises(BadToolError, match="nested"):
        normalize_tool({"name": "a", "_meta": _nested(200)}, SERVER, Settings())


@pytest.mark.parametrize("field", ["_meta", "annotations", "examples", "icons", "tags", "a_field_of_tomorrow"])
def test_what_is_beside_the_schemas_is_bounded_together(field: str) -> None:
    value = {"a": "x" * 300_000}
    raw = {"name": "a", field: ["x" * 300_000] if field in ("tags", "examples") else value}
    with pytest.raises(BadToolError, match="bytes beside its schemas"):
        normalize_tool(raw, SERVER, Settings())


@pytest.mark.parametrize("raw", [{"title": "x" * 1_025}, {"annotations": {"title": "x" * 1_025}}])
def test_a_title_of_1024_characters_is_the_longest(raw: dict[str, Any]) -> None:
    with pytest.raises(BadToolError, match="its title has 1,025 characters"):
        normalize_tool({"name": "a", **raw}, SERVER, Settings())


def test_fifty_thousand_values_are_the_most() -> None:
    with pytest.raises(BadToolError, match="more than 50,000 values"):
        normalize_tool({"name": "a", "_meta": {"a": [0] * 50_000}}, SERVER, Settings())


def test_an_object_that_contains_itself_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = [circle, circle]
    with pytest.raises(BadToolError, match="nested"):
        normalize_tool({"name": "a", "input_schema": circle}, SERVER, Settings())


def _endless() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"again": schema}
    return schema


def _wide(size: int) -> dict[str, Any]:
    properties = {f"field_{number}": {"type": "string", "description": "x" * 80} for number in range(size // 120)}
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"input_schema": _wide(5_000_000)}, "more than 50,000 values"),
        ({"output_schema": _wide(5_000_000)}, "more than 50,000 values"),
        ({"input_schema": _of_bytes(5_000_000)}, "bytes, over 262,144"),
        ({"input_schema": _nested(5_000)}, "nested deeper than 32 levels"),
        ({"annotations": _nested(5_000)}, "nested deeper than 32 levels"),
        ({"input_schema": _endless()}, "nested deeper than 32 levels"),
        ({"description": "x" * 5_000_000}, "characters, over 32,768"),
        ({"name": "x" * 5_000}, "its name has 5,000 characters"),
    ],
    ids=["input", "output", "bytes", "depth", "depth elsewhere", "holds itself", "description", "name"],
)
async def test_what_is_out_of_bounds_is_dropped_with_the_reason_and_the_rest_is_indexed(
    bad: dict[str, Any], reason: str
) -> None:
    async with _open() as scout:
        report = await scout.index_tools([GOOD[0], {"name": "bad", **bad}, *GOOD[1:]])
        assert report.new == 3
        assert len(report.dropped) == 1
        assert reason in report.dropped[0].reason
        assert len(report.dropped[0].where) < 200
        assert "name" in bad or report.dropped[0].where == "local: 'bad'"
        assert [match.tool.name for match in await scout.list_tools()] == [row["name"] for row in GOOD]


async def test_huge_definitions_leave_nothing_behind_in_memory() -> None:
    size = 5_000_000
    rows = [{"name": f"huge_{n}", "input_schema": {"type": "object", "title": str(n) * size}} for n in range(10)]
    async with _open() as scout:
        await scout.index_tools(GOOD)
        tracemalloc.start()
        try:
            report = await scout.index_tools([*rows, *GOOD])
            memory, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (report.unchanged, len(report.dropped)) == (3, 10)
    assert memory < size, "more than one of ten is still held"
    assert peak < 6 * size, "all ten were held at once"


LOOPS = [
    {"type": "object", "properties": {"next": {"$ref": "#"}}},
    {"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"child": {"$ref": "#/$defs/node"}}}}},
    {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
    {"properties": {"x": {"$ref": "#/nowhere"}}},
    {"properties": {"x": {"$ref": 5}}},
]


@pytest.mark.parametrize("schema", LOOPS)
async def test_references_that_loop_survive_as_they_are(schema: dict[str, Any]) -> None:
    async with _open(tools=[{**GOOD[0], "input_schema": schema}]) as scout:
        (match,) = await scout.get_tool_details("local__good_0")
    assert match.tool.input_schema == schema


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Give a socket that listens on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


async def test_a_reference_to_the_network_or_a_file_is_kept_and_never_fetched(listener: socket.socket) -> None:
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
    schema = {
        "$schema": address,
        "$id": address,
        "properties": {"remote": {"$ref": address}, "file": {"$ref": "file:///etc/passwd"}},
        "allOf": [{"$ref": address}],
    }
    row = {**GOOD[0], "input_schema": schema, "output_schema": {"$ref": address}}
    async with _open(tools=[row]) as scout:
        answer = await scout.search_tools("count sheep remote", detail="full", max_tokens=2_000)
        (match,) = await scout.get_tool_details("local__good_0")
        await scout.get_related_tools("local__good_0")
    assert answer[0].tool.input_schema == match.tool.input_schema == schema
    assert match.tool.output_schema == {"$ref": address}
    with pytest.raises(BlockingIOError):
        listener.accept()


async def test_a_server_with_too_many_tools_keeps_the_first_and_says_so() -> None:
    rows = [{"name": f"tool_{number:06}", "server": "huge"} for number in range(100_000)]
    async with _open(settings=Settings(max_tools=500)) as scout:
        report = await scout.index_tools([*rows, *GOOD])
        assert (report.new, [item.where for item in report.dropped]) == (503, ["huge"])
        assert "100,000 tools" in report.dropped[0].reason
        page = await scout.list_tools(server="huge", page=5, page_size=100)
        assert page[-1].tool.name == "tool_000499"


@pytest.mark.skipif(not SLOW, reason="takes half a minute: TOOLSCOUT_TEST_SLOW=1")
async def test_a_server_with_a_hundred_thousand_tools_is_indexed_whole() -> None:
    rows = [{"name": f"tool_{number:06}", "server": "huge"} for number in range(100_000)]
    async with Scout.open(store="memory:", settings=Settings(embedder="none")) as scout:
        report = await scout.index_tools(rows)
        assert (report.new, report.dropped) == (100_000, ())
        assert (await scout.search_tools("tool_054321"))[0].tool.name == "tool_054321"


async def test_a_line_that_is_nested_too_deeply_is_reported_and_the_rest_is_indexed(tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    deep = '{"name": "deep", "input_schema": ' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}"
    path.write_text(deep + "\n" + json.dumps(GOOD[0]) + "\n")
    async with _open() as scout:
        report = await scout.index_tools(path)
    assert report.new == 1
    assert report.dropped[0].where == f"{path}:1"
    assert "nested too deeply" in report.dropped[0].reason
