"""Attaching to the SDK's MCPServer: the two tools are added to its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.tools import Tool as FunctionTool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from pydantic import PrivateAttr

from toolscout.errors import InvalidValueError
from toolscout.mcp_tools import McpTool
from toolscout.registry.attach.registry_tools import run_tool, sdk_definition
from toolscout.registry.tool_results import McpResult


class _MCPServerTool(FunctionTool):
    """One of the two tools, in the class that MCPServer runs."""

    _tool: McpTool = PrivateAttr()

    @classmethod
    def of(cls, tool: McpTool) -> _MCPServerTool:
        """Wrap one of the two tools."""
        wrapper = cls(
            fn=tool.handler,
            name=tool.name,
            description=tool.description,
            parameters=dict(tool.input_schema),
            fn_metadata=FuncMetadata(arg_model=ArgModelBase),
            is_async=True,
            title=None,
            context_kwarg=None,
            annotations=sdk_definition(tool).annotations,
        )
        wrapper._tool = tool
        return wrapper

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[Any, Any],
        convert_result: bool = False,  # noqa: ARG002, FBT002 - the SDK's signature
    ) -> McpResult:
        """Run it with the unchanged arguments."""
        return await run_tool(self._tool, arguments, context)


def attach_mcpserver(server: MCPServer[Any], tools: Sequence[McpTool]) -> None:
    """Add the tools, unless the server has a tool of the same name."""
    server_tools = server._tool_manager._tools  # noqa: SLF001 - add_tool takes functions only
    check_names(tools, server_tools)
    server_tools.update({tool.name: _MCPServerTool.of(tool) for tool in tools})


def check_names(tools: Iterable[McpTool], server_names: Collection[str]) -> None:
    """Raise InvalidValueError if the server has a tool of the same name."""
    for tool in tools:
        if tool.name in server_names:
            raise InvalidValueError(
                f"the server already has a tool {tool.name!r}",
                hint="choose other names with attach(server, search_name=..., execute_name=...)",
            )
