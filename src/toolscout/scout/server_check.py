"""Connects every server of a config once, to see which of them work."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from toolscout.config import Config
from toolscout.errors import ToolscoutError
from toolscout.models import ServerStatus
from toolscout.ports import Store
from toolscout.scout.servers import LiveServers
from toolscout.settings import Settings


async def check_servers(config: Config, settings: Settings, store: Store | None = None) -> list[ServerStatus]:
    """Connect every server of a config once, list its tools, and return the status of each. Nothing is indexed.

    With a store, the accounts in it are used.
    """
    servers = LiveServers(settings, store=store)
    answered: set[str] = set()
    progress = asyncio.Event()

    async def list_once(key: str) -> None:
        server = servers.get(key)
        if server is not None and server.status.state == "ready":
            with suppress(ToolscoutError):
                await server.list_tools()
        answered.add(key)
        progress.set()

    try:
        servers.configure(config, {})
        await servers.start(list_once)
        while not servers.keys <= answered:
            await progress.wait()
            progress.clear()
        return servers.statuses()
    finally:
        await servers.close()
