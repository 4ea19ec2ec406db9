"""The SDK's low-level Server: its two handlers for tools are wrapped; what is not ours goes to them untouched."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ListToolsResult, PaginatedRequestParams
from mcp_types import Tool as SdkTool

from toolscout.registry.attach.tools import OwnTool

_log = logging.getLogger("toolscout")

Request = ServerRequestContext[Any, Any]


def attach_lowlevel(server: Server[Any], tools: Sequence[OwnTool]) -> None:
    """Add the tools after those that the server lists; a tool of the server's own with such a name keeps it."""
    own = {tool.name: tool for tool in tools}
    theirs: set[str] = set()
    listed, called = server.get_request_handler("tools/list"), server.get_request_handler("tools/call")

    async def on_list(ctx: Request, params: PaginatedRequestParams) -> HandlerResult:
        result = await listed.handler(ctx, params) if listed else ListToolsResult(tools=[])
        return _with_own(result, own, theirs)

    async def on_call(ctx: Request, params: CallToolRequestParams) -> HandlerResult:
        tool = None if params.name in theirs else own.get(params.name)
        if tool is not None:
            return await tool.run(params.arguments or {}, Context(request_context=ctx, input_params=params))
        if called is None:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {params.name[:200]}")
        return await called.handler(ctx, params)

    server.add_request_handler("tools/list", PaginatedRequestParams, on_list)
    server.add_request_handler("tools/call", CallToolRequestParams, on_call)
    _extend_schemas(server, own, theirs, alone=listed is None)


def _extend_schemas(server: Server[Any], own: Mapping[str, OwnTool], theirs: set[str], *, alone: bool) -> None:
    """Let the server know the schemas of the two tools without a listing, where it knows its own that way."""
    known = server.get_tool_input_schema
    if known is None and not alone:
        return

    def schema(name: str) -> Mapping[str, Any] | None:
        if name in own and name not in theirs:
            return own[name].definition.input_schema
        return known(name) if known else None

    server.get_tool_input_schema = schema


def _with_own(result: HandlerResult, own: Mapping[str, OwnTool], theirs: set[str]) -> HandlerResult:
    """Put the two tools at the end of the last page."""
    if isinstance(result, ListToolsResult):
        _yield_names(theirs, own, [tool.name for tool in result.tools])
        if result.next_cursor is not None:
            return result
        return result.model_copy(update={"tools": [*result.tools, *_free(own, theirs)]})
    if isinstance(result, Mapping) and isinstance(result.get("tools"), list):
        names = [
            item.get("name") if isinstance(item, Mapping) else getattr(item, "name", "") for item in result["tools"]
        ]
        _yield_names(theirs, own, names)
        if result.get("nextCursor") is not None:
            return result
        added = [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in _free(own, theirs)]
        return {**result, "tools": [*result["tools"], *added]}
    return result


def _free(own: Mapping[str, OwnTool], theirs: set[str]) -> list[SdkTool]:
    return [tool.definition for name, tool in own.items() if name not in theirs]


def _yield_names(theirs: set[str], own: Mapping[str, OwnTool], names: Sequence[Any]) -> None:
    for name in own.keys() & set(names) - theirs:
        theirs.add(name)
        _log.warning("the server has a tool %r of its own, which stays; attach the registry with another name", name)
