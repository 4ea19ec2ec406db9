"""All servers of a config: connected side by side in the background, changed one by one, ended without a trace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from toolscout.config import Config, ServerConfig
from toolscout.downstream.debounce import Debouncer
from toolscout.downstream.reaper import Reaper
from toolscout.downstream.server import DownstreamServer
from toolscout.models import Overlay
from toolscout.ports import LiveServer
from toolscout.settings import Settings
from toolscout.tool_keys import assign_slugs

_log = logging.getLogger("toolscout")

OnChange = Callable[[str], Awaitable[None]]


class DownstreamServers:
    """The live servers of one gateway."""

    def __init__(self, config: Config, settings: Settings, *, known: Mapping[str, str] | None = None) -> None:
        """Take a config; `known` (slug -> title) are servers of the catalogue, which keep their slugs."""
        self._settings = settings
        self._reaper = Reaper()
        self._known = dict(known or {})
        self._servers: dict[str, DownstreamServer] = {}
        self._notices: dict[str, Debouncer] = {}
        self._on_change: OnChange | None = None
        self._applying = asyncio.Lock()
        for key, server in self._slugs(config.servers).items():
            self._add(key, server)

    @property
    def servers(self) -> Mapping[str, LiveServer]:
        """The servers by slug, those that are switched off too."""
        return MappingProxyType(self._servers)

    async def start(self, on_change: OnChange) -> None:
        """Begin to connect to all of them and return at once; `on_change` is told the slug of each that changed."""
        self._on_change = on_change
        for server in self._servers.values():
            server.start()

    async def apply(self, config: Config) -> None:
        """Follow an edit: only what differs is connected, closed or connected anew."""
        async with self._applying:
            wanted = self._slugs(config.servers)
            gone = self._servers.keys() - wanted.keys()
            both = wanted.keys() & self._servers.keys()
            other = {key for key in both if not _same_way(self._servers[key].config, wanted[key])}
            await asyncio.gather(*(self._drop(key) for key in gone | other))
            for key in both - other:
                if self._servers[key].config != wanted[key]:
                    self._servers[key].config = wanted[key]
                    self._notices[key].trigger()
            for key in wanted.keys() - (both - other):
                self._add(key, wanted[key])
                if self._on_change is not None:
                    self._servers[key].start()

    def ask_again(self, key: str) -> None:
        """Tell of a server as if it had changed, as soon as its interval allows; one that is gone is not told of."""
        if key in self._notices:
            self._notices[key].trigger()

    async def close(self) -> None:
        """End every session and process; nothing of any server is left afterwards."""
        async with self._applying:
            await asyncio.gather(*(self._drop(key) for key in list(self._servers)))
            await asyncio.to_thread(self._reaper.close)

    def _add(self, key: str, config: ServerConfig) -> None:
        notice = Debouncer(lambda: self._notify(key), self._settings.reindex_interval_s)
        self._notices[key] = notice
        self._servers[key] = DownstreamServer(key, config, self._settings, self._reaper, changed=notice.trigger)

    async def _drop(self, key: str) -> None:
        await self._notices.pop(key).close()
        await self._servers.pop(key).close()

    async def _notify(self, key: str) -> None:
        server = self._servers.get(key)
        if self._on_change is None or server is None:
            return
        await self._on_change(key)
        if server.ttl_s is not None and key in self._notices:
            self._notices[key].trigger_in(server.ttl_s)

    def _slugs(self, configs: Iterable[ServerConfig]) -> dict[str, ServerConfig]:
        known = {**self._known, **{key: server.config.title for key, server in self._servers.items()}}
        by_title = {config.title: config for config in configs}
        return {slug: by_title[title] for title, slug in assign_slugs(by_title, known).items()}


def _same_way(one: ServerConfig, other: ServerConfig) -> bool:
    """Say whether two configs reach a server in the same way: what is said about its tools may differ."""
    blank = {"overlay": Overlay(), "tool_overlays": {}, "trusted": True, "extra": {}, "source": "", "tenants": None}
    return replace(one, **blank) == replace(other, **blank)  # type: ignore[arg-type]
