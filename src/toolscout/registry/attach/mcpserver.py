"""The SDK's MCPServer: the two tools are added as an author adds tools, so that no other call takes a new way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp.server.mcpserver import MCPServer

from toolscout.errors import InvalidValueError
from toolscout.registry.attach.tools import OwnTool


def attach_mcpserver(server: MCPServer[Any], tools: Sequence[OwnTool]) -> None:
    """Add the tools; a name that is taken is refused before anything is added."""
    for tool in tools:
        if server._tool_manager.get_tool(tool.name) is not None:  # noqa: SLF001 - add_tool would keep quiet
            refuse(tool.name)
    for tool in tools:
        server.add_tool(tool.function, name=tool.name, description=tool.description, annotations=tool.annotations)


def refuse(name: str) -> None:
    """Raise because the server has a tool of that name."""
    raise InvalidValueError(
        f"the server has a tool {name!r} of its own",
        hint="attach(server, search_name=..., execute_name=...) gives the registry's tools other names",
    )
