"""`python -m benchmarks.registry.attach`: what a registry adds to a call of a visible tool.

The server with a registry and the same server without one are called in turn, by the SDK's client in memory. So the
load of the machine affects both alike.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from fastmcp import FastMCP
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

from benchmarks.data import machine, markdown, rows, save
from toolscout import ToolMetadata, ToolRegistry, request_providers, sample

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

ROUNDS, CALLS = 60, 20
HIDDEN, OWN = 2_000, 10
ERAS = {"2026-07-28": "2026-07-28", "handshake": "legacy"}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

Way = Callable[[], Awaitable[Any]]


def lowlevel() -> Server[Any]:
    """Make a low-level server with an echo tool."""

    async def listed(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="echo", input_schema=SCHEMA)])

    async def called(_context: Any, params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=params.arguments["text"])])

    return Server("low", on_list_tools=listed, on_call_tool=called)


def echo(text: str) -> str:
    """Echo."""
    return text


async def echo_async(text: str) -> str:
    """Echo."""
    return text


def mcpserver() -> MCPServer[Any]:
    """Make an MCPServer with an echo tool."""
    server: MCPServer[Any] = MCPServer("high")
    server.add_tool(echo_async, name="echo")
    return server


def fastmcp() -> FastMCP[Any]:
    """Make a FastMCP server with an echo tool."""
    server: FastMCP[Any] = FastMCP("fast")
    server.tool(echo_async, name="echo")
    return server


SERVERS: Mapping[str, Callable[[], Any]] = {"low-level Server": lowlevel, "MCPServer": mcpserver, "FastMCP": fastmcp}


class Notes:
    """Ten tools of one request."""

    def list_tool_metadata(self) -> list[ToolMetadata]:
        """Return them."""
        return [ToolMetadata(name=f"note_{n}", description=f"Read note number {n} of mine") for n in range(OWN)]

    def get_tool(self, name: str) -> Any:
        """Return one."""
        return {"name": name, "description": "Read a note of mine"}

    def call_tool(self, name: str, arguments: Any) -> Any:
        """Name it."""
        return f"{name} {arguments}"


def filled(size: int) -> ToolRegistry:
    """Make a registry with so many tools, from the bundled sample."""
    registry = ToolRegistry()
    given = rows(sample.path())
    for number in range(size):
        row = given[number % len(given)]
        copy = number // len(given)
        name = f"{row['server']}_{row['name']}_{copy}"
        text = f"{row.get('description', '')} For site {copy}."
        registry.register_tool({"name": name, "description": text, "inputSchema": SCHEMA}, echo_async)
    return registry


async def rounds(ways: Mapping[str, Way], count: int = ROUNDS, calls: int = CALLS) -> dict[str, list[float]]:
    """Take every way in turn; return the median of each round in milliseconds."""
    for call in ways.values():
        for _ in range(30):
            await call()
    medians: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(count):
        for name, call in ways.items():
            times = []
            for _ in range(calls):
                begun = time.perf_counter()
                await call()
                times.append((time.perf_counter() - begun) * 1_000)
            medians[name].append(statistics.median(times))
    return medians


async def visible(registry: ToolRegistry, make: Callable[[], Any], era: str) -> dict[str, float]:
    """Call the visible tool of a plain and of an attached server."""
    plain, attached = make(), make()
    registry.attach(attached)
    async with AsyncExitStack() as stack:

        async def opened(server: Any) -> Way:
            target = server._mcp_server if isinstance(server, FastMCP) else server
            client = await stack.enter_async_context(Client(target, mode=era))
            await client.list_tools()
            return lambda: client.call_tool("echo", {"text": "hello"})

        found = await rounds({"plain": await opened(plain), "attached": await opened(attached)})
    added = [b - a for a, b in zip(found["plain"], found["attached"], strict=True)]
    return {
        "plain_ms": round(statistics.median(found["plain"]), 3),
        "attached_ms": round(statistics.median(found["attached"]), 3),
        "added_ms": round(statistics.median(added), 3),
        "added_p95_ms": round(sorted(added)[int(len(added) * 0.95)], 3),
    }


async def hidden(registry: ToolRegistry) -> dict[str, float]:
    """Search and call what is hidden, through MCP."""
    server = mcpserver()
    registry.attach(server)
    queries = [str(row["description"]) for row in rows(sample.path())]
    asked = 0
    name = (await registry.list_tool_metadata())[0].name
    async with Client(server, mode="2026-07-28") as client:
        await client.list_tools()

        async def search() -> Any:
            nonlocal asked
            asked += 1
            query = f"{queries[asked % len(queries)][:60]} {asked}"
            return await client.call_tool("tool_search", {"query": query, "max_results": 5})

        async def search_own() -> Any:
            with request_providers(Notes()):
                return await registry.search(f"my note {asked}", limit=5)

        ways = {
            "search": search,
            "execute": lambda: client.call_tool("execute_tool", {"name": name, "arguments": {"text": "hello"}}),
            "request": search_own,
        }
        found = await rounds(ways, 20, 10)
    return {way: round(statistics.median(values), 2) for way, values in found.items()}


async def measure() -> None:
    """Measure everything and write it down."""
    registry = filled(HIDDEN)
    begun = time.perf_counter()
    await registry.refresh()
    found: dict[str, Any] = {
        "machine": machine(),
        "hidden_tools": HIDDEN,
        "first_index_s": round(time.perf_counter() - begun, 1),
        "visible": {
            f"{kind}, {said}": await visible(registry, make, era)
            for kind, make in SERVERS.items()
            for said, era in ERAS.items()
        },
        "hidden": await hidden(registry),
    }
    registry.close()
    save("registry", found, report(found))


def report(found: dict[str, Any]) -> str:
    """Write the tables."""
    table = [
        [name, row["plain_ms"], row["attached_ms"], row["added_ms"], row["added_p95_ms"]]
        for name, row in found["visible"].items()
    ]
    ways = found["hidden"]
    return "\n\n".join(
        [
            "# The registry",
            "`python -m benchmarks.registry.attach`, on " + ", ".join(f"{k} {v}" for k, v in found["machine"].items()),
            f"A call of a visible tool on a server without and with a registry of {found['hidden_tools']:,} hidden "
            f"tools, in memory, {ROUNDS} interleaved rounds of {CALLS} calls. Added is the difference of the medians "
            "of a round: its median and its 95th percentile over the rounds.",
            markdown(["server, client", "plain p50 ms", "attached p50 ms", "added ms", "added p95 ms"], table),
            f"The hidden ones, through MCP, p50: `tool_search` {ways['search']} ms (every query new), `execute_tool` "
            f"{ways['execute']} ms. `registry.search` in a request with {OWN} tools of its own: {ways['request']} ms. "
            f"Indexing all {found['hidden_tools']:,} before the first search: {found['first_index_s']} s.",
        ]
    )


if __name__ == "__main__":
    asyncio.run(measure())
