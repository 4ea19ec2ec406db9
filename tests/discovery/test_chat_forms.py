"""Definitions and names as the chat APIs accept them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscout.chat import anthropic_tool, model_name, model_names, openai_tool, plain_schema
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
    with pytest.raises(InvalidValueError, match="no OpenAI API"):
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
