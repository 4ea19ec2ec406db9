"""What the chat APIs are known to refuse. For one bad definition they refuse the whole request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}\Z")
NOT_ON_TOP = {"oneOf", "anyOf", "allOf", "enum", "not"}
MOST_TOOLS = 128
LONGEST_DESCRIPTION = 1_024


def check_openai_tools(tools: Sequence[Mapping[str, Any]]) -> None:
    """Fail where Chat Completions would answer 400."""
    assert len(tools) <= MOST_TOOLS
    _check_names([tool["function"]["name"] for tool in tools])
    for tool in tools:
        assert tool.keys() == {"type", "function"}
        assert tool["type"] == "function"
        body = tool["function"]
        assert body.keys() <= {"name", "description", "parameters", "strict"}
        assert len(body["description"]) <= LONGEST_DESCRIPTION
        _check_schema(body["parameters"])
        assert all("items" in part for part in _arrays(body["parameters"])), "array schema missing items"


def check_anthropic_tools(tools: Sequence[Mapping[str, Any]]) -> None:
    """Fail where Messages would answer 400."""
    _check_names([tool["name"] for tool in tools])
    for tool in tools:
        assert tool.keys() == {"name", "description", "input_schema"}
        assert isinstance(tool["description"], str)
        _check_schema(tool["input_schema"])
        assert all(PROPERTY.match(name) for name in tool["input_schema"]["properties"])


def check_openai_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """Fail if the result of a tool does not follow its call, or a call has no result."""
    open_calls: set[str] = set()
    for message in messages:
        assert message["role"] in {"system", "user", "assistant", "tool"}
        if message["role"] == "tool":
            assert isinstance(message["content"], str)
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls, "an assistant message with tool_calls must be followed by tool messages"
        open_calls = {call["id"] for call in message.get("tool_calls") or ()}
    assert not open_calls


def check_anthropic_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """Fail if roles do not alternate, or the results of tools are not the next message."""
    assert messages[0]["role"] == "user"
    open_calls: set[str] = set()
    for number, message in enumerate(messages):
        assert message["role"] == ("assistant" if number % 2 else "user")
        blocks = message["content"] if isinstance(message["content"], list) else []
        assert {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"} == open_calls
        open_calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    assert not open_calls


def _check_names(names: Sequence[str]) -> None:
    assert len(set(names)) == len(names)
    assert all(NAME.match(name) for name in names)


def _check_schema(schema: Mapping[str, Any]) -> None:
    assert schema["type"] == "object"
    assert not NOT_ON_TOP & schema.keys()
    assert set(schema.get("required", ())) <= schema["properties"].keys()
    Draft202012Validator.check_schema(schema)


def _arrays(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if value.get("type") == "array":
            yield value
        for item in value.values():
            yield from _arrays(item)
    elif isinstance(value, list):
        for item in value:
            yield from _arrays(item)
