"""Tools from functions and from definitions look as the SDK would make them."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

import pytest
from fastmcp.tools.base import ToolResult
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolscout import BadToolError, InvalidValueError, ToolMetadata, ToolNotFoundError


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int | None = None


class Point(TypedDict):
    x: float
    y: float


def plain(to: str, count: int = 3, *, loud: bool = False) -> str:
    """Do it.

    Args:
        to: the one
    """
    return f"{to}{count}{loud}"


async def described(mode: Annotated[Literal["fast", "slow"], Field(description="how")]) -> Person:
    """Choose."""
    return Person(name=mode)


def with_context(ctx: Context, text: str) -> dict[str, Any]:
    return {"text": text, "context": type(ctx).__name__}


def nested(person: Person, points: list[Point]) -> list[int]:
    return [len(points), person.age or 0]


def untyped(anything, more=None):
    return anything


def nothing() -> None:
    """Do nothing."""


def blocks() -> list[TextContent]:
    return [TextContent(text="one"), TextContent(text="two")]


def picture() -> Image:
    return Image(data=b"\x89PNG", format="png")


def whole() -> CallToolResult:
    return CallToolResult(content=[TextContent(text="no")], is_error=True, _meta={"k": 1})


def crash() -> str:
    raise RuntimeError("secret detail")


FUNCTIONS: dict[Any, dict[str, Any]] = {
    plain: {"to": "x", "loud": True},
    described: {"mode": "fast"},
    with_context: {"text": "t"},
    nested: {"person": {"name": "n", "age": 4}, "points": [{"x": 1, "y": 2}]},
    untyped: {"anything": "b"},
    nothing: {},
    blocks: {},
    picture: {},
    whole: {},
    crash: {},
}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
async def test_definition_and_result_of_a_function_are_those_of_the_sdk(function, make_registry, connect):
    server, registry = MCPServer("sdk"), make_registry()
    server.add_tool(function)
    registry.tool(function)
    [expected] = await server.list_tools()
    assert await registry.get_tool(function.__name__) == expected

    registry.attach(server)
    arguments = FUNCTIONS[function]
    async with connect(server) as client:
        direct = await client.call_tool(function.__name__, arguments)
        hidden = await client.call_tool("execute_tool", {"name": function.__name__, "arguments": arguments})
    assert hidden == direct
    assert "secret" not in hidden.model_dump_json()


async def test_every_option_of_the_sdk_is_taken(make_registry):
    server, registry = MCPServer("sdk"), make_registry()
    options: dict[str, Any] = {
        "name": "named",
        "title": "A name",
        "description": "Described.",
        "annotations": ToolAnnotations(read_only_hint=True),
        "meta": {"k": "v"},
        "structured_output": False,
    }
    server.tool(**options)(plain)
    assert registry.tool(keywords=["k1", "k2"], **options)(plain) is plain
    assert await registry.get_tool("named") == (await server.list_tools())[0]
    assert await registry.list_tool_metadata() == [
        ToolMetadata(name="named", description="Described.", keywords=("k1", "k2"))
    ]


@pytest.mark.parametrize("definition", ["camel", "snake", "sdk"])
async def test_a_ready_definition_comes_as_a_mapping_or_as_the_sdks_tool(definition, make_registry):
    registry = make_registry()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    ready = {
        "camel": {"name": "double", "description": "d", "inputSchema": schema},
        "snake": {"name": "double", "description": "d", "input_schema": schema},
        "sdk": Tool(name="double", description="d", input_schema=schema),
    }[definition]
    registry.register_tool(ready, lambda n: n * 2, "twice")
    assert await registry.get_tool("double") == Tool(name="double", description="d", input_schema=schema)
    assert (await registry.call_tool("double", {"n": 4})).content[0].text == "8"


async def by_name(query, limit=5):
    return f"{query}/{limit}"


def by_mapping(arguments):
    return f"{arguments['query']}/{arguments.get('limit', 5)}"


def mapping_and_more(arguments, **more):
    return by_mapping(arguments)


def by_any_name(**arguments):
    return f"{arguments['query']}/{arguments.get('limit', 5)}"


async def with_request(arguments, ctx: Context):
    assert isinstance(ctx, Context)
    return by_mapping(arguments)


class Called:
    async def __call__(self, arguments):
        return by_mapping(arguments)


HANDLERS = [
    by_name,
    by_mapping,
    mapping_and_more,
    by_any_name,
    with_request,
    Called(),
    functools.partial(by_name, limit=5),
]


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: getattr(handler, "__name__", type(handler).__name__))
async def test_a_handler_gets_its_arguments_by_name_or_as_one_mapping(handler, make_registry):
    registry = make_registry()
    schema = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}
    registry.register_tool({"name": "find", "inputSchema": schema}, handler)
    assert (await registry.call_tool("find", {"query": "q"})).content[0].text == "q/5"


RETURNED: dict[str, tuple[Any, Any, Any]] = {
    "text": ("words", [TextContent(text="words")], None),
    "mapping": ({"a": 1}, [TextContent(text='{\n  "a": 1\n}')], None),
    "nothing": (None, [], None),
    "block": (
        ImageContent(data="aGk=", mime_type="image/png"),
        [ImageContent(data="aGk=", mime_type="image/png")],
        None,
    ),
    "wire result": (
        {"content": [{"type": "text", "text": "t"}], "structuredContent": {"a": 1}},
        [TextContent(text="t")],
        {"a": 1},
    ),
}


@pytest.mark.parametrize("kind", RETURNED)
async def test_whatever_a_handler_returns_becomes_a_result(kind, make_registry):
    value, content, structured = RETURNED[kind]
    registry = make_registry()
    registry.register_tool({"name": "give"}, lambda: value)
    assert await registry.call_tool("give") == CallToolResult(content=content, structured_content=structured)


async def test_a_result_of_fastmcps_kind_is_taken(make_registry):
    registry = make_registry()
    registry.register_tool({"name": "both"}, lambda: ToolResult(content="t", structured_content={"a": 1}))
    registry.register_tool({"name": "text"}, lambda: ToolResult(content="t"))
    content: list[ContentBlock] = [TextContent(text="t")]
    assert await registry.call_tool("both") == CallToolResult(content=content, structured_content={"a": 1})
    assert await registry.call_tool("text") == CallToolResult(content=content)


async def test_a_mapping_fills_the_output_schema_where_there_is_one(make_registry):
    registry = make_registry()
    registry.register_tool({"name": "give", "outputSchema": {"type": "object"}}, lambda: {"a": 1})
    assert (await registry.call_tool("give")).structured_content == {"a": 1}


async def test_registering_a_name_again_replaces_it_and_reports_it(registry):
    registry.register_tool({"name": "sql_query", "description": "Another"}, lambda: "another")
    assert (await registry.get_tool("sql_query")).description == "Another"
    assert (await registry.call_tool("sql_query")).content[0].text == "another"
    assert "'sql_query' is registered again" in registry.problems[-1].what


async def test_a_tool_that_is_unregistered_is_gone_from_search_and_calls(registry):
    assert [match.tool.name for match in await registry.search("sql_query", ranker="fuzzy", limit=1)] == ["sql_query"]
    assert registry.unregister("sql_query")
    assert not registry.unregister("sql_query")
    assert "sql_query" not in [match.tool.name for match in await registry.search("sql_query", ranker="fuzzy")]
    assert await registry.get_tool("sql_query") is None
    with pytest.raises(ToolNotFoundError):
        await registry.call_tool("sql_query", {"query": "x"})


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({"description": "no name"}, "no name"),
        ({"name": "x", "inputSchema": []}, "inputSchema"),
        ("x", "must be a mapping"),
        ({"name": "x", "icons": 5}, "its icons cannot be used"),
        ({"name": "x", "inputSchema": {"type": "object", "d": "x" * 300_000}}, "bytes"),
    ],
    ids=["no name", "schema", "text", "icons", "too large"],
)
def test_a_definition_that_cannot_be_used_is_refused_where_it_is_registered(definition, reason, make_registry):
    with pytest.raises(BadToolError, match=reason):
        make_registry().register_tool(definition, by_mapping)


def test_what_is_no_handler_or_no_keyword_is_refused(make_registry):
    with pytest.raises(InvalidValueError, match="cannot be called"):
        make_registry().register_tool({"name": "x"}, "handler")
    with pytest.raises(InvalidValueError, match="keywords"):
        make_registry().tool(keywords=[1])(plain)
