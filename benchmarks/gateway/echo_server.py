"""The smallest server on the SDK, with one tool that echoes: on stdio, or `echo_server.py PORT` on HTTP."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    tool = types.Tool(name="echo", description="Echo a text", input_schema=SCHEMA)
    return types.ListToolsResult(tools=[tool])


async def call_tool(_context: Any, params: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=params.arguments["text"])])


server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import uvicorn

        uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
    else:
        anyio.run(serve_stdio)
