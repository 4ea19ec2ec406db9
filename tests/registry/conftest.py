"""Registries that share the loaded model, and servers of every kind that a registry is attached to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

from tool_providers import Stuck
from toolscout import Settings, ToolRegistry

NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


@pytest.fixture
def make_registry(embedder) -> Iterator[Callable[..., ToolRegistry]]:
    """Return a function that makes registries; they are closed at the end."""
    made: list[ToolRegistry] = []

    def make(*, name: str = "", **settings: Any) -> ToolRegistry:
        made.append(ToolRegistry(embedder=embedder, settings=Settings(**settings), name=name))
        return made[-1]

    yield make
    for registry in made:
        registry.close()


@pytest.fixture
def registry(make_registry) -> ToolRegistry:
    """Return a registry with three tools."""
    registry = make_registry()

    @registry.tool(keywords=["email", "smtp", "correspondence"])
    async def send_email(to: str, subject: str, body: str) -> str:
        """Send an email to a recipient."""
        return f"{subject} sent to {to}"

    @registry.tool
    def resize_image(path: str, width: int) -> dict[str, int]:
        """Make a picture smaller or larger."""
        return {"width": width}

    registry.register_tool(
        {
            "name": "sql_query",
            "description": "Execute SQL queries",
            "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        },
        lambda query: f"executed: {query}",
        "database",
        "sql",
    )
    return registry


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    """Return calls that hang until the test is over."""
    stuck = Stuck()
    yield stuck
    stuck.over.set()


def lowlevel_server() -> Server[Any]:
    """Make a low-level server with one visible tool."""

    async def listed(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="add", description="Add", input_schema=NUMBERS)], ttl_ms=7_000)

    async def called(_context: Any, params: Any) -> CallToolResult:
        if params.name != "add":
            return CallToolResult(content=[TextContent(text=f"no tool {params.name}")], is_error=True)
        total = params.arguments["a"] + params.arguments["b"]
        return CallToolResult(content=[TextContent(text=str(total))], _meta={"own": 1})

    return Server("low", on_list_tools=listed, on_call_tool=called)


def _add(a: int, b: int) -> int:
    """Add."""
    return a + b


def mcpserver() -> MCPServer[Any]:
    """Make an MCPServer with one visible tool."""
    server = MCPServer("high")
    server.add_tool(_add, name="add")
    return server


def fastmcp_server() -> FastMCP[Any]:
    """Make a FastMCP server with one visible tool."""
    server: FastMCP[Any] = FastMCP("fast")
    server.tool(_add, name="add")
    return server


SERVERS = {"lowlevel": lowlevel_server, "mcpserver": mcpserver, "fastmcp": fastmcp_server}


@pytest.fixture(params=sorted(SERVERS))
def make_server(request) -> Callable[[], Any]:
    """Return a function that makes a server with the visible tool `add`, of each kind in turn."""
    return SERVERS[request.param]


@pytest.fixture(params=["2026-07-28", "legacy"])
def era(request) -> str:
    """Return the mode of a client, for each era in turn."""
    return request.param


@pytest.fixture
def connect() -> Callable[..., Any]:
    """Return a function that connects the SDK's own client in memory to a server of any kind."""
    from mcp import Client

    def connected(server: Any, mode: str = "auto", **options: Any) -> Client:
        target = server._mcp_server if isinstance(server, FastMCP) else server
        return Client(target, mode=mode, **options)

    return connected
