"""`tools/call`: find the listed tool of that name, run it, and return errors as results."""

from __future__ import annotations

import json
import logging
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolscout.errors import CallError, ToolscoutError
from toolscout.gateway.call_forwarder import ToolRequest
from toolscout.gateway.middleware import to_protocol_error
from toolscout.gateway.tool_lists import ToolLists
from toolscout.mcp_tools import McpTool, error_result, meta_with_repairs
from toolscout.telemetry.mcp_operation import describe_call
from toolscout.telemetry.spans import current_span

_LONGEST_NAME = 200
_log = logging.getLogger("toolscout")


class Dispatcher:
    """Runs the tools that `tools/list` shows, and no others."""

    def __init__(self, tool_lists: ToolLists) -> None:
        self._tool_lists = tool_lists

    async def handle(self, request: ToolRequest) -> dict[str, Any]:
        """Handle one request. An error becomes a result that says what to do next."""
        name = str(request.params["name"])
        try:
            tool = self._tool_lists.tools.get(name)
            if tool is None:
                return await self._pass_through(name, request)
            describe_call(current_span(), name)
            return await _run(tool, request)
        except ToolscoutError as error:
            return error_result(error, request.max_bytes)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - clients must not see the details of a bug
            _log.exception("%s failed", name)
            return error_result(error, request.max_bytes)

    async def _pass_through(self, key: str, request: ToolRequest) -> dict[str, Any]:
        """Call a downstream tool that is listed under its key. A protocol error of its server is raised as one."""
        tool_list = await self._tool_lists.of(request.caller)
        if key not in tool_list.schemas:
            request.scout.access.record_unlisted_call(request.caller, key, request.params.get("arguments"))
            raise _unknown_tool(key)
        describe_call(current_span(), key)
        try:
            return await request.forward(key, request.params.get("arguments"))
        except CallError as error:
            if isinstance(error.details.get("code"), int):
                raise to_protocol_error(error) from error
            raise


async def _run(tool: McpTool, request: ToolRequest) -> dict[str, Any]:
    result, repairs = await tool.run(request, request.params.get("arguments") or {})
    return {**result, "_meta": meta_with_repairs(result.get("_meta"), repairs)} if repairs else result


def _unknown_tool(name: str) -> MCPError:
    """Build the error for a name that is not listed. It does not reveal whether a tool of that key exists.

    It ends with the call to make, because small models call what they found, or what they invent, by its own name.
    """
    hint = "tools/list shows the tools of this server. Find others with search_tools and call them with call_tool"
    name = name[:_LONGEST_NAME]
    if "__" in name:
        call = f'{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {{...}}}}'
        advice = f"A key that search_tools found is called with call_tool: {call}"
    else:
        words = " ".join(name.replace("_", " ").replace("-", " ").split())
        advice = (
            f"First search_tools {json.dumps({'query': words}, ensure_ascii=False)}; a hit is called with call_tool"
        )
    return MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name}. {advice}", data={"hint": hint})
