"""FastMCP: the two tools come from a provider of their own, after all that the server has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastmcp import Context as FastMCPContext
from fastmcp import FastMCP
from fastmcp.server.dependencies import get_context
from fastmcp.server.providers import LocalProvider
from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
from mcp.server.mcpserver import Context
from mcp_types import CallToolRequestParams, InputRequiredResult
from pydantic import PrivateAttr

from toolscout.registry.attach.mcpserver import refuse
from toolscout.registry.attach.tools import OwnTool


class _Tool(Tool):
    """One of the two tools, as FastMCP runs tools."""

    _own: OwnTool = PrivateAttr()

    @classmethod
    def of(cls, own: OwnTool) -> _Tool:
        """Wrap one of the registry's tools."""
        made = cls(
            name=own.name,
            description=own.description,
            parameters=own.definition.input_schema,
            annotations=own.annotations,
        )
        made._own = own
        return made

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run it in the SDK's own terms, and pass its result on as it is."""
        result = await self._own.run(arguments, _sdk_context(arguments, self.name))
        if isinstance(result, InputRequiredResult):
            return InputRequiredToolResult(result)
        return ToolResult.from_mcp_result(result)


def attach_fastmcp(server: FastMCP[Any], tools: Sequence[OwnTool]) -> None:
    """Add the tools; a name that the server itself has is refused before anything is added."""
    known = server.local_provider._components.values()  # noqa: SLF001 - what is public here must be awaited
    taken = {item.name for item in known if isinstance(item, Tool)}
    for tool in tools:
        if tool.name in taken:
            refuse(tool.name)
    provider = LocalProvider()
    for tool in tools:
        provider.add_tool(_Tool.of(tool))
    server.add_provider(provider)


def fastmcp_context() -> FastMCPContext:
    """Return FastMCP's context of the request, for a handler that asks for it."""
    return get_context()


def _sdk_context(arguments: dict[str, Any], name: str) -> Context[Any, Any]:
    """Build the SDK's context of the request from FastMCP's."""
    ours = get_context()
    params = CallToolRequestParams(
        name=name, arguments=arguments, input_responses=ours.input_responses, request_state=ours.request_state
    )
    around: Any = ours.request_context
    return Context(request_context=getattr(around, "_srctx", None), input_params=params)
