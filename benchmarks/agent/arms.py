"""The arms of the comparison: which tools the model is shown, and what answers its calls.

In some arms the model sees the definitions of tools themselves: all of them, the right one alone (`oracle`), or those
that a search for the request has chosen. In the `search` arms it sees the tools of a real MCP server, which finds and
calls the others. Four of them try another form than Toolscout's.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from fastmcp import Client as FastClient
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool, ToolResult
from jsonschema import Draft202012Validator
from mcp import Client

from benchmarks.agent.pools import Pool
from toolscout import Scout, Settings
from toolscout.gateway.server import Gateway
from toolscout.testing import FakeCall, FakeServer

CHOSEN = 5
"""How many tools are chosen beforehand, and FastMCP's own default for a search."""

NEXT_CALL = re.compile(r"^(Next|To call the first): (\w+) (.*)$", re.MULTILINE)
FEW_TOOLS = {"search_tools": ("query",), "call_tool": ("name", "arguments")}

Reached = tuple[str, Mapping[str, Any]]
"""The key and the arguments of a call that reached a server."""
Form = Literal["text", "two tools", "whole call", "signatures", "schemas", "json"]
"""What the model is shown: what Toolscout shows; no tool but a search by query alone and `call_tool`; the next call
with the name of the tool that makes it as JSON; or answers without the best schema, with all of them, or as JSON."""


@dataclass(frozen=True)
class Reply:
    """What came back for a call of the model, and the call that reached a server with it, if one did."""

    text: str
    reached: Reached | None = None


@dataclass(frozen=True)
class Arm:
    """What the model sees and how its calls are answered."""

    instructions: str
    definitions: Callable[[str], Awaitable[list[dict[str, Any]]]]
    """The tools that are shown for the task of this key."""
    call: Callable[[str, Mapping[str, Any]], Awaitable[Reply]]


def definition(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Write a tool as a chat API is told of it."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": dict(schema)}}


def _problem(row: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Check arguments as an ordinary server does, without repairs."""
    errors = list(Draft202012Validator(row["input_schema"]).iter_errors(arguments))
    return "; ".join(error.message[:200] for error in errors[:3])


def _of_row(key: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return definition(key, row.get("description", ""), row["input_schema"])


def _prompt_arm(pool: Pool, choose: Callable[[str], Awaitable[list[str]]]) -> Arm:
    async def definitions(key: str) -> list[dict[str, Any]]:
        return [_of_row(chosen, pool.rows[chosen]) for chosen in await choose(key)]

    async def call(name: str, arguments: Mapping[str, Any]) -> Reply:
        if name not in pool.rows:
            return Reply(f"Unknown tool: {name}")
        problem = _problem(pool.rows[name], arguments)
        return Reply(f"Error: {problem}") if problem else Reply("done", (name, arguments))

    return Arm("", definitions, call)


@asynccontextmanager
async def all_tools(pool: Pool) -> AsyncIterator[Arm]:
    """Show every definition."""

    async def choose(_key: str) -> list[str]:
        return list(pool.rows)

    yield _prompt_arm(pool, choose)


@asynccontextmanager
async def oracle(pool: Pool) -> AsyncIterator[Arm]:
    """Show the right tool alone."""

    async def choose(key: str) -> list[str]:
        return [key]

    yield _prompt_arm(pool, choose)


@asynccontextmanager
async def toolscout_chosen(pool: Pool) -> AsyncIterator[Arm]:
    """Show what `discover_tools` chooses for the request."""
    async with Scout.open(tools=list(pool.rows.values()), settings=Settings(store="memory:")) as scout:

        async def choose(key: str) -> list[str]:
            picked = await scout.discover_tools(pool.tasks[key].request, limit=CHOSEN)
            return [item.tool.key for item in picked if item.tool.key in pool.rows]

        yield _prompt_arm(pool, choose)


@asynccontextmanager
async def fastmcp_chosen(pool: Pool) -> AsyncIterator[Arm]:
    """Show what FastMCP's BM25 finds for the request."""
    engine = BM25SearchTransform(max_results=CHOSEN)
    tools = [
        Tool(name=key, description=row.get("description", ""), parameters=dict(row["input_schema"]))
        for key, row in pool.rows.items()
    ]

    async def choose(key: str) -> list[str]:
        return [tool.name for tool in await engine._search(tools, pool.tasks[key].request)]

    yield _prompt_arm(pool, choose)


@asynccontextmanager
async def toolscout_search(pool: Pool, form: Form = "text") -> AsyncIterator[Arm]:
    """Show the gateway's tools."""
    reached: list[Reached] = []
    keys = {(row["server"], row["name"]): key for key, row in pool.rows.items()}
    by_server: dict[str, list[Mapping[str, Any]]] = {}
    for row in pool.rows.values():
        by_server.setdefault(row["server"], []).append(row)

    def server(title: str) -> FakeServer:
        def answer(call: FakeCall) -> str:
            reached.append((keys[title, call.name], call.arguments))
            return "done"

        return FakeServer(title, by_server[title], answer=answer)

    settings = Settings(store="memory:")
    async with Scout.open(servers=[server(title) for title in by_server], settings=settings) as scout:
        gateway = Gateway(scout, settings=settings)
        async with gateway.running(), Client(gateway.server) as client:
            yield await _search_arm(client, reached, client.instructions or "", form)


@asynccontextmanager
async def fastmcp_search(pool: Pool) -> AsyncIterator[Arm]:
    """Show FastMCP's search tool and its tool that calls the others."""
    reached: list[Reached] = []

    class RecordedTool(Tool):
        async def run(self, arguments: dict[str, Any]) -> ToolResult:
            problem = _problem(pool.rows[self.name], arguments)
            if problem:
                raise ToolError(problem)
            reached.append((self.name, arguments))
            return ToolResult(content="done")

    peer: FastMCP[Any] = FastMCP("tools")
    for key, row in pool.rows.items():
        peer.add_tool(
            RecordedTool(name=key, description=row.get("description", ""), parameters=dict(row["input_schema"]))
        )
    peer.add_transform(BM25SearchTransform(max_results=CHOSEN))
    async with FastClient(peer) as client:
        yield await _search_arm(client, reached, "")


async def _search_arm(client: Any, reached: list[Reached], instructions: str, form: Form = "text") -> Arm:
    listed = await client.list_tools()
    shown = [
        definition(tool.name, tool.description or "", tool.input_schema) for tool in getattr(listed, "tools", listed)
    ]
    if form == "two tools":
        shown = [_with_parameters(item, *FEW_TOOLS[name]) for item in shown if (name := _name(item)) in FEW_TOOLS]

    async def definitions(_key: str) -> list[dict[str, Any]]:
        return shown

    async def call(name: str, arguments: Mapping[str, Any]) -> Reply:
        before = len(reached)
        full = {"detail": "full"} if form == "schemas" and name == "search_tools" else {}
        try:
            result = await client.call_tool(name, {**arguments, **full})
        except Exception as error:  # noqa: BLE001 - a host shows the model whatever went wrong
            return Reply(f"Error: {error}")
        text = "\n".join(getattr(item, "text", "") for item in result.content)
        if form == "json" and result.structured_content:
            text = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
        if form == "two tools":
            text = text.replace("call_read_tool", "call_tool")
        if form == "whole call":
            text = NEXT_CALL.sub(r'\1: {"name":"\2","arguments":\3}', text)
        if form == "signatures":
            text = "\n".join(line for line in text.splitlines() if not line.startswith("input_schema of "))
        return Reply(text, reached[before] if len(reached) > before else None)

    return Arm(instructions, definitions, call)


def _name(shown: Mapping[str, Any]) -> str:
    return str(shown["function"]["name"])


def _with_parameters(shown: Mapping[str, Any], *names: str) -> dict[str, Any]:
    function = shown["function"]
    properties = {name: function["parameters"]["properties"][name] for name in names}
    return {**shown, "function": {**function, "parameters": {**function["parameters"], "properties": properties}}}


ARMS: dict[str, Callable[[Pool], Any]] = {
    "oracle": oracle,
    "all": all_tools,
    "fastmcp chosen": fastmcp_chosen,
    "toolscout chosen": toolscout_chosen,
    "fastmcp search": fastmcp_search,
    "toolscout search": toolscout_search,
    "toolscout search, two tools": partial(toolscout_search, form="two tools"),
    "toolscout search, whole call": partial(toolscout_search, form="whole call"),
    "toolscout search, signatures alone": partial(toolscout_search, form="signatures"),
    "toolscout search, all schemas": partial(toolscout_search, form="schemas"),
    "toolscout search, JSON": partial(toolscout_search, form="json"),
}
