"""Attaching a registry to a server, which adds two tools and changes nothing else."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from toolscout.errors import InvalidValueError
from toolscout.registry.attach.lowlevel import attach_lowlevel
from toolscout.registry.attach.mcpserver import attach_mcpserver
from toolscout.registry.attach.registry_tools import SearchableTools, make_tools


def attach(registry: SearchableTools, server: Any, *, search_name: str, execute_name: str) -> None:
    """Add the two tools to a server of any supported kind."""
    if search_name == execute_name:
        raise InvalidValueError(f"both tools are named {search_name!r}", hint="give them different names")
    tools = make_tools(registry, search_name, execute_name)
    if isinstance(server, MCPServer):
        attach_mcpserver(server, tools)
    elif isinstance(server, Server):
        attach_lowlevel(server, tools)
    elif any(kind.__module__.partition(".")[0] == "fastmcp" for kind in type(server).__mro__):
        from toolscout.registry.attach.fastmcp import attach_fastmcp

        attach_fastmcp(server, tools)
    else:
        raise InvalidValueError(
            f"a registry cannot be attached to a {type(server).__name__}",
            hint="pass a Server or MCPServer of the MCP SDK, or a FastMCP server",
        )
