"""A client that sends requests and returns results as plain dictionaries, in either era."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from mcp import ClientSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.memory import create_client_server_memory_streams
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    CallToolResult,
    Implementation,
    TextContent,
)

MODERN = "2026-07-28"
WAIT_S = 10.0


@dataclass
class RawClient:
    """Sends requests and returns results unchanged."""

    dispatcher: JSONRPCDispatcher
    session: ClientSession
    modern: bool
    capabilities: Mapping[str, Any]

    async def request(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """Send one request."""
        payload = dict(params or {})
        if self.modern:
            payload["_meta"] = {
                **(payload.get("_meta") or {}),
                PROTOCOL_VERSION_META_KEY: MODERN,
                CLIENT_INFO_META_KEY: {"name": "raw", "version": "1"},
                CLIENT_CAPABILITIES_META_KEY: dict(self.capabilities),
            }
        asked: CallOptions = {"timeout": WAIT_S, **options}  # type: ignore[typeddict-item]
        return await self.dispatcher.send_raw_request(method, payload, asked)


@asynccontextmanager
async def raw_client(
    server: Any, era: str, *, capabilities: Mapping[str, Any] | None = None, **callbacks: Any
) -> AsyncIterator[RawClient]:
    """Connect to a server in memory and use the protocol of an era."""
    info = Implementation(name="raw", version="1")
    async with (
        create_client_server_memory_streams() as ((read, write), (server_read, server_write)),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, server_read, server_write, server.create_initialization_options())
        dispatcher: JSONRPCDispatcher = JSONRPCDispatcher(read, write)
        async with ClientSession(dispatcher=dispatcher, client_info=info, **callbacks) as session:
            if era == MODERN:
                await session.discover()
            else:
                await session.initialize()
            yield RawClient(dispatcher, session, era == MODERN, capabilities or {})
        tasks.cancel_scope.cancel()


def text_of(result: CallToolResult) -> str:
    """Return the text of a result whose first block is text."""
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text
