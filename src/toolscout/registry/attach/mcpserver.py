"""Attaching to the SDK's MCPServer: the two tools are put beside those of the author, whose calls do not change."""

from __future__ import annotations

from collections.abc import Sequence
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
    """One of the two tools, as an MCPServer runs tools."""

    _tool: McpTool = PrivateAttr()

    @classmethod
    def of(cls, tool: McpTool) -> _MCPServerTool:
        """Wrap one of the registry's tools."""
        wrapped = cls(
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
        wrapped._tool = tool
        return wrapped

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[Any, Any],
        convert_result: bool = False,  # noqa: ARG002, FBT002 - the SDK's signature
    ) -> McpResult:
        """Run it with the arguments as they came."""
        return await run_tool(self._tool, arguments, context)


def attach_mcpserver(server: MCPServer[Any], tools: Sequence[McpTool]) -> None:
    """Add the tools; a name that is taken is refused before anything is added."""
    server_tools = server._tool_manager._tools  # noqa: SLF001 - add_tool takes functions only
    for tool in tools:
        if tool.name in server_tools:
            refuse_name(tool.name)
    server_tools.update({tool.name: _MCPServerTool.of(tool) for tool in tools})


def refuse_name(name: str) -> None:
    """Raise because the server has a tool of that name."""
    raise InvalidValueError(
        f"the server has a tool {name!r} of its own",
        hint="attach(server, search_name=..., execute_name=...) gives the registry's tools other names",
    )
