"""One raw definition in, one clean Tool out, or a reason why not."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import pytest

from toolscout import BadToolError, Server, Settings, Tool
from toolscout.indexing import normalize
from toolscout.indexing.normalize import normalize_tool, not_kept

SERVER = Server(key="server", title="The Server")


def _tool(**raw: Any) -> Tool:
    return normalize_tool(raw, SERVER, Settings())


def test_a_definition_keeps_what_its_author_wrote() -> None:
    schema = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}
    tool = _tool(
        name="send",
        title="Send",
        description="Send it.",
        input_schema=schema,
        output_schema={"type": "string"},
        annotations={"readOnlyHint": True},
        category="mail",
        tags=["post"],
        keywords=["letter"],
        capabilities=["deliver"],
        examples=[{"b": "x"}, "send b"],
        related=["server__read"],
        id="tool-1",
    )
    assert (tool.key, tool.id, tool.server, tool.server_title) == ("server__send", "tool-1", "server", "The Server")
    assert list(tool.input_schema["properties"]) == ["b", "a"]
    assert (tool.category, tool.tags, tool.keywords) == ("mail", ("post",), ("letter",))
    assert tool.capabilities == ("deliver",)
    assert tool.related == ("server__read",)
    assert tool.examples == ({"b": "x"}, "send b")
    assert tool.read_only


def test_every_field_that_is_read_counts_as_kept() -> None:
    code = inspect.getsource(normalize)
    read = set(re.findall(r'\bclean\.get\("(\w+)"\)|\(clean, "(\w+)"\)', code))
    fields = {name for pair in read for name in pair if name}
    assert {"capabilities", "category", "_meta"} <= fields
    assert not not_kept(dict.fromkeys(fields))


@pytest.mark.parametrize("field", ["input_schema", "inputSchema", "parameters"])
def test_a_schema_is_read_under_each_of_its_names(field: str) -> None:
    assert _tool(name="a", **{field: {"type": "object"}}).input_schema == {"type": "object"}


def test_a_definition_may_be_a_name_alone() -> None:
    tool = _tool(name="a")
    assert (tool.description, tool.input_schema, tool.output_schema, tool.id) == ("", {}, None, "server__a")


def test_texts_become_nfc_everywhere() -> None:
    decomposed = "e\u0301"
    tool = _tool(name=decomposed, description=decomposed, tags=[decomposed], input_schema={decomposed: [decomposed]})
    assert (tool.name, tool.description, tool.tags) == ("é", "é", ("é",))
    assert tool.input_schema == {"é": ["é"]}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({}, "no name"),
        ({"name": ""}, "no name"),
        ({"name": "  "}, "no name"),
        ({"name": 5}, "name must be text, not int"),
        ({"name": None}, "no name"),
        ({"name": "x" * 257}, "257 characters"),
        ({"name": "a\nb"}, "control characters"),
        ({"name": "a\x00b"}, "control characters"),
        ({"name": "a\x1b[31m"}, "control characters"),
        ({"name": "a", "description": ["x"]}, "description must be text, not list"),
        ({"name": "a", "description": "x" * 32_769}, "32,769 characters"),
        ({"name": "a", "title": {}}, "title must be text"),
        ({"name": "a", "category": 1}, "category must be text"),
        ({"name": "a", "input_schema": "object"}, "input_schema must be an object, not str"),
        ({"name": "a", "inputSchema": []}, "inputSchema must be an object, not list"),
        ({"name": "a", "output_schema": 1}, "output_schema must be an object"),
        ({"name": "a", "annotations": []}, "annotations must be an object"),
        ({"name": "a", "_meta": "x"}, "_meta must be an object"),
        ({"name": "a", "tags": {"a": 1}}, "lists of text"),
        ({"name": "a", "tags": [1]}, "lists of text"),
        ({"name": "a", "keywords": 5}, "lists of text"),
        ({"name": "a", "related": [None]}, "lists of text"),
        ({"name": "a", "input_schema": {"x": {1, 2}}}, "set, which is not JSON"),
        ({"name": "a", "input_schema": {"x": b"1"}}, "bytes, which is not JSON"),
        ({"name": "a", "input_schema": {"x": float("nan")}}, "nan"),
        ({"name": "a", "input_schema": {"x": float("-inf")}}, "inf"),
        ({"name": "a", "input_schema": {"x": 10**5_000}}, "digits"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_definition_is_refused_with_its_reason(raw: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadToolError, match=reason):
        normalize_tool(raw, SERVER, Settings())


@pytest.mark.parametrize("raw", [None, 5, "tool", ["name"], ("name", "a")])
def test_what_is_no_object_is_no_tool(raw: Any) -> None:
    with pytest.raises(BadToolError, match="must be an object"):
        normalize_tool(raw, SERVER, Settings())


def test_one_tag_may_be_given_as_text_and_blank_ones_are_left_out() -> None:
    assert _tool(name="a", tags="web").tags == ("web",)
    assert _tool(name="a", tags=[" web ", "", "  ", "web"]).tags == ("web",)


@pytest.mark.parametrize(
    "meta",
    [
        {"tags": ["web", "html"]},
        {"_fastmcp": {"tags": ["web", "html"]}},
        {"fastmcp": {"tags": ["web", "html"]}},
        {"io.modelcontextprotocol/tags": ["web", "html"]},
        {"tags": ["web", 5, None, " html "]},
    ],
)
def test_tags_in_meta_are_read(meta: dict[str, Any]) -> None:
    assert _tool(name="a", _meta=meta).tags == ("web", "html")


def test_tags_in_meta_join_those_of_the_definition() -> None:
    assert _tool(name="a", tags=["a", "web"], _meta={"tags": ["web", "b"]}).tags == ("a", "web", "b")


@pytest.mark.parametrize("meta", [{"tags": "web"}, {"tags": {"x": 1}}, {"fastmcp": 5}])
def test_meta_that_is_something_else_gives_no_tags(meta: dict[str, Any]) -> None:
    assert _tool(name="a", _meta=meta).tags == ()


def test_control_characters_of_a_description_become_spaces_and_those_of_a_schema_stay() -> None:
    tool = _tool(name="a", description="one\x00two\x1b[31m\nthree\tfour", input_schema={"default": "\x00\x1b"})
    assert tool.description == "one two [31m\nthree\tfour"
    assert tool.input_schema == {"default": "\x00\x1b"}


def test_half_a_surrogate_pair_never_reaches_the_store() -> None:
    tool = _tool(name="a", description="x \ud800 y", tags=["\udfff"], input_schema={"\ud800": ["\ud800"]})
    assert tool.description == "x ? y"
    json.dumps([tool.tags, tool.input_schema], ensure_ascii=False).encode("utf-8")


def test_the_title_may_stand_among_the_annotations() -> None:
    assert _tool(name="a", annotations={"title": "A tool"}).title == "A tool"
    assert _tool(name="a", title="Mine", annotations={"title": "A tool"}).title == "Mine"
