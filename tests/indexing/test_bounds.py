"""Bounds: what is too large or too deep is dropped with its reason, the rest is indexed, and nothing is fetched."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from guarantees import guarantee
from toolscout import BadToolError, Scout, Server, Settings
from toolscout.indexing.normalize import canonical_json, normalize_tool

pytestmark = guarantee("catalog:bounds")

SERVER = Server(key="server", title="server")
GOOD = {"name": "good", "description": "A good tool."}


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


def test_an_object_that_contains_itself_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = [circle, circle]
    with pytest.raises(BadToolError, match="nested"):
        normalize_tool({"name": "a", "input_schema": circle}, SERVER, Settings())


async def test_a_schema_of_five_megabytes_is_dropped_with_the_reason_and_the_rest_is_indexed(
    open_scout: Callable[..., Scout],
) -> None:
    huge = {"name": "huge", "input_schema": {"enum": ["x" * 1_000 for _ in range(5_200)]}}
    async with open_scout() as scout:
        report = await scout.index_tools([huge, GOOD, {"name": "deep", "input_schema": _nested(5_000)}])
        assert {match.tool.name for match in await scout.list_tools()} == {"good"}
    assert report.new == 1
    assert [item.where for item in report.dropped] == ["local: 'huge'", "local: 'deep'"]
    assert "bytes, over 262,144" in report.dropped[0].reason
    assert "nested deeper than 32" in report.dropped[1].reason


LOOPS = [
    {"type": "object", "properties": {"next": {"$ref": "#"}}},
    {"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"child": {"$ref": "#/$defs/node"}}}}},
    {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
    {"properties": {"x": {"$ref": "#/nowhere"}}},
    {"properties": {"x": {"$ref": 5}}},
]


@pytest.mark.parametrize("schema", LOOPS)
async def test_references_that_loop_survive_as_they_are(
    open_scout: Callable[..., Scout], schema: dict[str, Any]
) -> None:
    async with open_scout([{**GOOD, "input_schema": schema}]) as scout:
        (match,) = await scout.get_tool_details("local__good")
    assert match.tool.input_schema == schema


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Give a socket that listens on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


async def test_a_reference_to_the_network_is_never_fetched(
    open_scout: Callable[..., Scout], listener: socket.socket
) -> None:
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
    schema = {"$schema": address, "$id": address, "properties": {"x": {"$ref": address}}, "allOf": [{"$ref": address}]}
    rows = [{**GOOD, "input_schema": schema, "output_schema": {"$ref": address}}]
    async with open_scout(rows) as scout:
        await scout.search_tools("a good tool", detail="full")
        (match,) = await scout.get_tool_details("local__good")
        await scout.get_related_tools("local__good")
    assert match.tool.input_schema == schema
    with pytest.raises(BlockingIOError):
        listener.accept()


async def test_a_server_may_bring_only_so_many_tools_and_says_what_was_left_out(
    open_scout: Callable[..., Scout],
) -> None:
    rows = [{"server": "many", "name": f"tool_{number}"} for number in range(12)]
    async with open_scout(settings=replace(Settings(), max_tools=10)) as scout:
        report = await scout.index_tools(rows)
    assert report.new == 10
    assert [(item.where, "12 tools" in item.reason) for item in report.dropped] == [("many", True)]


async def test_a_line_that_is_nested_too_deeply_is_reported_and_the_rest_is_indexed(
    open_scout: Callable[..., Scout], tmp_path: Any
) -> None:
    path = tmp_path / "tools.jsonl"
    deep = '{"name": "deep", "input_schema": ' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}"
    path.write_text(deep + "\n" + json.dumps(GOOD) + "\n")
    async with open_scout() as scout:
        report = await scout.index_tools(path)
    assert report.new == 1
    assert report.dropped[0].where == f"{path}:1"
    assert "nested too deeply" in report.dropped[0].reason
