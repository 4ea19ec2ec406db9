"""An ASGI app on loopback, in the loop of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Serve an app and yield its address. The socket listens already, so that no client has to wait."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=3))
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def client_as(
    url: str, *, mode: str = "auto", **headers: str
) -> AsyncIterator[tuple[Client, httpx2.AsyncClient]]:
    """Connect the SDK's client with headers, and give the HTTP client below it, whose headers can be changed."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client, http
