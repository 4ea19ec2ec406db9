"""Attaching to the SDK's low-level Server, by wrapping its handlers of `tools/list` and `tools/call`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ListToolsResult, PaginatedRequestParams

from toolscout.mcp_tools import McpTool
from toolscout.registry.attach.registry_tools import run_tool, sdk_definition

_log = logging.getLogger("toolscout")

Request = ServerRequestContext[Any, Any]


def attach_lowlevel(server: Server[Any], tools: Sequence[McpTool]) -> None:
    """Add the tools after those that the server lists. On equal names, the server's own tool has precedence."""
    added = {tool.name: tool for tool in tools}
    taken: set[str] = set()
    on_server_list, on_server_call = server.get_request_handler("tools/list"), server.get_request_handler("tools/call")

    async def on_list(ctx: Request, params: PaginatedRequestParams) -> HandlerResult:
        result = await on_server_list.handler(ctx, params) if on_server_list else ListToolsResult(tools=[])
        return _append_tools(result, added, taken)

    async def on_call(ctx: Request, params: CallToolRequestParams) -> HandlerResult:
        tool = None if params.name in taken else added.get(params.name)
        if tool is not None:
            return await run_tool(tool, params.arguments or {}, Context(request_context=ctx, input_params=params))
        if on_server_call is None:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {params.name[:200]}")
        return await on_server_call.handler(ctx, params)

    server.add_request_handler("tools/list", PaginatedRequestParams, on_list)
    server.add_request_handler("tools/call", CallToolRequestParams, on_call)
    _extend_schemas(server, added, taken, has_no_tools=on_server_list is None)


def _extend_schemas(server: Server[Any], added: Mapping[str, McpTool], taken: set[str], *, has_no_tools: bool) -> None:
    """Add the two schemas to the server's lookup of input schemas, if it has one."""
    lookup = server.get_tool_input_schema
    if lookup is None and not has_no_tools:
        return

    def schema(name: str) -> Mapping[str, Any] | None:
        if name in added and name not in taken:
            return added[name].input_schema
        return lookup(name) if lookup else None

    server.get_tool_input_schema = schema


def _append_tools(result: HandlerResult, added: Mapping[str, McpTool], taken: set[str]) -> HandlerResult:
    """Append the two tools to the last page."""
    if isinstance(result, ListToolsResult):
        _note_collisions(taken, added, [tool.name for tool in result.tools])
        if result.next_cursor is not None:
            return result
        definitions = [sdk_definition(tool) for name, tool in added.items() if name not in taken]
        return result.model_copy(update={"tools": [*result.tools, *definitions]})
    if isinstance(result, Mapping) and isinstance(result.get("tools"), list):
        names = [
            item.get("name") if isinstance(item, Mapping) else getattr(item, "name", "") for item in result["tools"]
        ]
        _note_collisions(taken, added, names)
        if result.get("nextCursor") is not None:
            return result
        raw = [tool.definition() for name, tool in added.items() if name not in taken]
        return {**result, "tools": [*result["tools"], *raw]}
    return result


def _note_collisions(taken: set[str], added: Mapping[str, McpTool], names: Sequence[Any]) -> None:
    for name in added.keys() & set(names) - taken:
        taken.add(name)
        _log.warning("the server has its own tool %r, which takes precedence: attach with another name", name)
