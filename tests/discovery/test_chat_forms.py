"""Definitions and names as the chat APIs accept them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_apis import check_anthropic_tools, check_openai_tools
from toolscout.chat import anthropic_tool, model_name, model_names, openai_tool, own_arguments, plain_schema
from toolscout.errors import InvalidValueError
from toolscout.models import Tool

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")


def tool(key: str = "mail__send", **fields: Any) -> Tool:
    server, name = key.split("__", 1)
    return Tool(key=key, id=key, server=server, server_title=server, name=name, **fields)


@pytest.mark.parametrize("key", ["mail__send", "a-b__c_d-e", "x__" + "y" * 61])
def test_a_legal_key_is_its_own_name(key: str) -> None:
    assert model_name(key) == key


@given(st.text(min_size=1, max_size=200))
def test_every_key_gets_a_legal_name_always_the_same(key: str) -> None:
    assert LEGAL.match(model_name(key))
    assert model_name(key) == model_name(key)


@given(st.lists(st.text(alphabet="ab.:/é _", min_size=1, max_size=90), unique=True, max_size=30))
def test_names_lead_back_to_their_keys(keys: list[str]) -> None:
    assert sorted(model_names(keys).values()) == sorted(keys)


@given(st.lists(st.text(alphabet="ab._", min_size=1, max_size=9), unique=True, max_size=20))
def test_a_key_written_like_the_name_of_another_keeps_apart(keys: list[str]) -> None:
    everything = list(dict.fromkeys([*keys, *map(model_name, keys), *map(model_name, map(model_name, keys))]))
    assert len(model_names(everything)) == len(everything)


def test_long_keys_that_begin_alike_keep_apart() -> None:
    keys = [f"server__{'long_' * 20}{number}" for number in range(100)]
    assert len(model_names(keys)) == 100


def test_the_forms_of_each_api() -> None:
    shown = tool(description="Send.", input_schema={"type": "object", "properties": {"to": {"type": "string"}}})
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    body = {"name": "n", "description": "Send.", "parameters": schema}
    assert openai_tool("n", shown) == {"type": "function", "function": body}
    assert openai_tool("n", shown, "responses") == {"type": "function", **body}
    assert anthropic_tool("n", shown) == {"name": "n", "description": "Send.", "input_schema": schema}
    with pytest.raises(InvalidValueError, match="is not an OpenAI API"):
        openai_tool("n", shown, "assistants")


def test_a_tool_without_parameters_gets_an_empty_object() -> None:
    assert plain_schema({}) == {"type": "object", "properties": {}}


def test_alternatives_on_top_are_laid_together() -> None:
    either = {
        "oneOf": [
            {"properties": {"id": {"type": "integer"}, "note": {}}, "required": ["id", "note"]},
            {"properties": {"name": {"type": "string"}, "note": {}}, "required": ["name", "note"]},
        ],
        "allOf": [{"properties": {"who": {}}, "required": ["who"]}],
        "$defs": {"x": {}},
    }
    plain = plain_schema(either)
    assert not {"oneOf", "anyOf", "allOf"} & plain.keys()
    assert sorted(plain["properties"]) == ["id", "name", "note", "who"]
    assert plain["required"] == ["who", "note"]
    assert plain["$defs"] == {"x": {}}


def test_alternatives_may_be_references_also_in_circles() -> None:
    by_id = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    circle = {"anyOf": [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/by_id"}]}
    plain = plain_schema({"$ref": "#/$defs/circle", "$defs": {"by_id": by_id, "circle": circle}})
    assert plain["properties"] == {"id": {"type": "integer"}}
    assert "$ref" not in plain


RUBBISH: list[dict[str, Any]] = [
    {"type": "object", "required": True, "properties": []},
    {"type": "object", "properties": {"$schema": "http://json-schema.org/draft-07/schema#", "any": True, "no": False}},
    {"type": "object", "required": ["gone", 1], "enum": [{}], "not": {"type": "string"}},
    {"anyOf": "x", "oneOf": [1, {"properties": {"a": {}}}], "allOf": [{"required": "a"}]},
    {"properties": {"any": {"type": "any"}, "n": {"type": "number", "minimum": 0, "exclusiveMinimum": True}}},
    {"$ref": "#/nowhere/at/all"},
    {"$ref": "https://example.com/schema.json"},
    {"properties": {"list": {"type": "array"}, "deep": {"items": {"type": ["array", "null"]}, "type": "array"}}},
    {"properties": {"$filter": {"type": "string"}, "StartTime<": {}, "StartTime>": {}, "x" * 99: {}, "": {}}},
]


@pytest.mark.parametrize("schema", RUBBISH)
def test_whatever_a_server_sends_the_apis_accept_it(schema: dict[str, Any]) -> None:
    shown = tool(description="word " * 1_000, input_schema=schema)
    check_openai_tools([openai_tool("n", shown)])
    check_anthropic_tools([anthropic_tool("n", shown)])


def test_a_list_without_items_says_that_it_holds_anything() -> None:
    schema = {"properties": {"default": {"type": "array", "default": {"type": "array"}}}}
    assert plain_schema(schema)["properties"] == {
        "default": {"type": "array", "default": {"type": "array"}, "items": {}}
    }


def test_a_long_description_is_cut_at_a_word_for_openai_alone() -> None:
    shown = tool(description="word " * 1_000)
    cut = openai_tool("n", shown)["function"]["description"]
    assert 1_000 < len(cut) <= 1_024
    assert cut.endswith("word …")
    assert anthropic_tool("n", shown)["description"] == "word " * 1_000
    assert len(openai_tool("n", tool(description="x" * 2_000))["function"]["description"]) == 1_024


@given(st.dictionaries(st.text(max_size=80), st.just({"type": "string"}), max_size=8))
def test_arguments_lead_back_to_the_names_of_their_parameters(properties: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    plain = plain_schema(schema)
    assert plain.get("required", []) == list(plain["properties"])
    given_back = own_arguments(schema, dict.fromkeys(plain["properties"], "x"))
    assert given_back == dict.fromkeys(properties, "x")
