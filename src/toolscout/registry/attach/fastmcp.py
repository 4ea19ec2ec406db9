"""Attaching to FastMCP: a provider adds the two tools after those of the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.dependencies import get_context
from fastmcp.server.providers import LocalProvider
from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
from mcp.server.mcpserver import Context
from mcp_types import CallToolRequestParams, InputRequiredResult
from pydantic import PrivateAttr

from toolscout.mcp_tools import McpTool
from toolscout.registry.attach.mcpserver import check_names
from toolscout.registry.attach.registry_tools import run_tool, sdk_definition


class _FastMCPTool(Tool):
    """One of the two tools, in the class that FastMCP runs."""

    _tool: McpTool = PrivateAttr()

    @classmethod
    def of(cls, tool: McpTool) -> _FastMCPTool:
        """Wrap one of the two tools."""
        wrapper = cls(
            name=tool.name,
            description=tool.description,
            parameters=dict(tool.input_schema),
            annotations=sdk_definition(tool).annotations,
        )
        wrapper._tool = tool
        return wrapper

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run it in the SDK's context and return its result unchanged."""
        result = await run_tool(self._tool, arguments, _sdk_context(arguments, self.name))
        if isinstance(result, InputRequiredResult):
            return InputRequiredToolResult(result)
        return ToolResult.from_mcp_result(result)


def attach_fastmcp(server: FastMCP[Any], tools: Sequence[McpTool]) -> None:
    """Add the tools, unless the server has a tool of the same name."""
    components = server.local_provider._components.values()  # noqa: SLF001 - the public method is asynchronous
    check_names(tools, {item.name for item in components if isinstance(item, Tool)})
    provider = LocalProvider()
    for tool in tools:
        provider.add_tool(_FastMCPTool.of(tool))
    server.add_provider(provider)


def _sdk_context(arguments: dict[str, Any], name: str) -> Context[Any, Any]:
    """Build the SDK's context of the request from FastMCP's."""
    context = get_context()
    params = CallToolRequestParams(
        name=name, arguments=arguments, input_responses=context.input_responses, request_state=context.request_state
    )
    request_context: Any = context.request_context
    return Context(request_context=getattr(request_context, "_srctx", None), input_params=params)
