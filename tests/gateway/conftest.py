"""A gateway over scripted servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from scripted import Call, Scripted, text
from toolscout import Scout
from toolscout.gateway.server import Gateway
from toolscout.settings import Settings


@dataclass
class Open:
    """A running gateway, and its scout and servers."""

    gateway: Gateway
    scout: Scout
    servers: list[Scripted]

    @property
    def server(self) -> Any:
        """Return the server that the SDK's in-memory client connects to."""
        return self.gateway.server


@pytest.fixture
def open_gateway(open_scout):
    """Return a function that opens a gateway over scripted servers."""

    @asynccontextmanager
    async def opened(
        *servers: Scripted, store: str = "memory:", settings: Settings | None = None, **options: Any
    ) -> AsyncIterator[Open]:
        settings = settings or Settings(reindex_interval_s=0.05)
        async with open_scout(store=store, settings=settings, servers=servers) as scout:
            gateway = Gateway(scout, settings=settings, **options)
            async with gateway.running():
                yield Open(gateway, scout, list(servers))

    return opened


@pytest.fixture
def demo() -> Scripted:
    """Return a server with a few tools of different kinds."""
    server = Scripted("demo")
    number = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    reads = {"readOnlyHint": True}

    async def echo(call: Call) -> Mapping[str, Any]:
        return text(str(dict(call.arguments)))

    server.tool("echo", echo, description="Say back what was said", annotations=reads)
    server.tool("count_sheep", echo, description="Count sheep up to a number", inputSchema=number, annotations=reads)
    server.tool("send_letter", echo, description="Send a letter to somebody by post")
    return server
