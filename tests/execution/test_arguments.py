"""Valid arguments are sent unchanged, common errors are repaired and reported, others are explained."""

import socket
from typing import Any

import pytest

from toolscout import InvalidArgumentsError, Tool
from toolscout.arguments import validate_arguments
from toolscout.gateway.discovery_tools import call_tool
from toolscout.mcp_tools import mcp_tool

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "factor": {"type": "number"},
        "metric": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"type": "object"},
        "units": {"enum": ["celsius", "fahrenheit"]},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def tool(schema: dict[str, Any] | None = None) -> Tool:
    return Tool(
        key="w__forecast",
        id="w__forecast",
        server="w",
        server_title="w",
        name="forecast",
        input_schema=SCHEMA if schema is None else schema,
    )


def test_arguments_that_fit_go_out_as_they_are() -> None:
    arguments = {"city": "Oslo", "days": 3, "limit": None, "tags": ["a"], "where": {"x": 1}}
    assert validate_arguments(tool(), arguments) == (arguments, ())


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ('{"city": "Oslo"}', {"city": "Oslo"}),
        ({"arguments": {"city": "Oslo"}}, {"city": "Oslo"}),
        ({"input": {"city": "Oslo"}}, {"city": "Oslo"}),
        ({"city": "Oslo", "days": "3"}, {"city": "Oslo", "days": 3}),
        ({"city": "Oslo", "factor": "1.5"}, {"city": "Oslo", "factor": 1.5}),
        ({"city": "Oslo", "factor": "2"}, {"city": "Oslo", "factor": 2}),
        ({"city": "Oslo", "metric": "True"}, {"city": "Oslo", "metric": True}),
        ({"city": "Oslo", "metric": "false"}, {"city": "Oslo", "metric": False}),
        ({"city": "Oslo", "tags": "wind"}, {"city": "Oslo", "tags": ["wind"]}),
        ({"city": "Oslo", "tags": '["wind"]'}, {"city": "Oslo", "tags": ["wind"]}),
        ({"city": "Oslo", "where": '{"x": 1}'}, {"city": "Oslo", "where": {"x": 1}}),
        ({"city": 7150, "days": 1}, {"city": "7150", "days": 1}),
        ({"city": "Oslo", "days": None}, {"city": "Oslo"}),
        ({"city": "Oslo", "limit": "4"}, {"city": "Oslo", "limit": 4}),
    ],
)
def test_common_errors_of_models_are_repaired_and_reported(given: Any, sent: dict[str, Any]) -> None:
    arguments, repairs = validate_arguments(tool(), given)
    assert arguments == sent
    assert repairs
    assert all(isinstance(value, type(sent[name])) for name, value in arguments.items())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "'city' is missing"),
        (None, "'city' is missing"),
        ({"city": "Oslo", "town": "x"}, "it takes city, days"),
        ({"city": "Oslo", "days": "three"}, "days must be integer, not string"),
        ({"city": "Oslo", "days": 2.5}, "days must be integer, not number"),
        ({"city": "Oslo", "units": "kelvin"}, "units must be one of 'celsius', 'fahrenheit'"),
        ({"city": ["Oslo"]}, "city must be string, not array"),
        ({"city": None}, "city must be string, not null"),
        ("not json", "must be an object"),
        (["Oslo"], "must be an object"),
        (3, "must be an object"),
    ],
)
def test_what_cannot_be_repaired_says_what_to_change_and_sends_nothing(given: Any, said: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="w__forecast") as caught:
        validate_arguments(tool(), given)
    assert said in caught.value.message
    assert "nothing was sent" in caught.value.hint
    assert caught.value.details["input_schema"] == SCHEMA


def test_a_parameter_that_is_called_arguments_is_not_unwrapped() -> None:
    schema = {"type": "object", "properties": {"arguments": {"type": "object"}}}
    arguments = {"arguments": {"city": "Oslo"}}
    assert validate_arguments(tool(schema), arguments) == (arguments, ())


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "nonsense"},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"$ref": "#"},
        {"type": "object", "properties": "none"},
    ],
)
def test_a_broken_schema_blocks_no_call(schema: dict[str, Any]) -> None:
    assert validate_arguments(tool(schema), {"a": "x"}) == ({"a": "x"}, ())


def test_a_schema_that_contains_itself_is_followed_as_deep_as_the_arguments_go() -> None:
    schema = {
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "value": {"type": "integer"}},
        "required": ["value"],
    }
    good = {"value": 1, "next": {"value": 2, "next": {"value": 3}}}
    assert validate_arguments(tool(schema), good)[0] == good
    with pytest.raises(InvalidArgumentsError, match=r"next\.next"):
        validate_arguments(tool(schema), {"value": 1, "next": {"value": 2, "next": {"value": "x"}}})


def test_a_reference_into_the_network_is_never_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        schema = {"type": "object", "properties": {"a": {"$ref": url}}}
        assert validate_arguments(tool(schema), {"a": 1}) == ({"a": 1}, ())
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize("name", ["limit", "top_k", "max_results", "k"])
def test_the_names_that_other_systems_have_for_limit_are_read(name: str) -> None:
    @mcp_tool("Search.")
    async def search(request: Any, query: str, limit: int = 5) -> None: ...

    assert search.read_arguments({"query": "x", name: 1})[0] == {"query": "x", "limit": 1}
    assert search.read_arguments({"query": "x", "limit": 2})[0]["limit"] == 2
    with pytest.raises(InvalidArgumentsError, match="search has no parameter 'topk'"):
        search.read_arguments({"query": "x", "topk": 1})


def test_other_names_of_documents_and_models_are_read_for_every_parameter() -> None:
    @mcp_tool("Find.")
    async def find(request: Any, names: list[str], match: str = "any", detail: str = "brief") -> None: ...

    given = {"name": ["a"], "match_mode": "all", "detail_level": "full"}
    assert find.read_arguments(given)[0] == {"names": ["a"], "match": "all", "detail": "full"}
    assert call_tool.read_arguments({"tool_name": "a", "arguments": {}})[0] == {"name": "a", "arguments": {}}
    assert call_tool.read_arguments({"name": "a", "key": 1})[0] == {"name": "a", "arguments": {"key": 1}}


def test_a_misspelt_parameter_is_named_beside_the_one_that_is_missing() -> None:
    @mcp_tool("Search.")
    async def search(request: Any, query: str, limit: int = 5) -> None: ...

    with pytest.raises(InvalidArgumentsError, match="'query' is missing; unknown 'qurey'; it takes query, limit"):
        search.read_arguments({"qurey": "x"})
    closed = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    with pytest.raises(InvalidArgumentsError) as caught:
        validate_arguments(tool(closed), {"b": 1})
    assert caught.value.message.count("unknown 'b'; it takes a") == 1
    composed = {"type": "object", "properties": {"a": {}}, "required": ["a"], "allOf": [{"properties": {"b": {}}}]}
    with pytest.raises(InvalidArgumentsError) as caught:
        validate_arguments(tool(composed), {"b": 1})
    assert "unknown" not in caught.value.message


def test_what_stands_beside_the_arguments_of_a_call_is_refused_and_not_dropped() -> None:
    with pytest.raises(InvalidArgumentsError, match="call_tool has no parameter 'force'"):
        call_tool.read_arguments({"name": "a", "arguments": {"x": 1}, "force": True})
