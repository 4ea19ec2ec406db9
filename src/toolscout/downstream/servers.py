"""All servers of a config: connected in parallel in the background, and replaced one by one when the config changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from toolscout.config import Config, ServerConfig
from toolscout.downstream.debounce import Debouncer
from toolscout.downstream.reaper import Reaper
from toolscout.downstream.reconnect import ConnectionState
from toolscout.downstream.server import DownstreamServer
from toolscout.downstream.sign_in.account_store import AccountStore
from toolscout.models import Caller, Overlay, Scope
from toolscout.ports import LiveServer
from toolscout.settings import Settings
from toolscout.telemetry import Metrics
from toolscout.tool_keys import assign_slugs

_COLLECT_S = 1.0

OnChange = Callable[[str], Awaitable[None]]


class DownstreamServers:
    """The live servers of one gateway."""

    def __init__(
        self,
        config: Config,
        settings: Settings,
        *,
        stored_titles: Mapping[str, str] | None = None,
        adopt_orphans: bool = False,
        accounts: AccountStore | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Take a config. Servers of the catalogue (`stored_titles`, slug -> title) keep their slug.

        With `adopt_orphans`, this process has no other children than those of its servers. Without `accounts`, nobody
        is signed in anywhere.
        """
        self._settings = settings
        self._accounts = accounts
        self._metrics = metrics
        self._reaper = Reaper(adopt=adopt_orphans)
        self._collector: asyncio.Task[None] | None = None
        self._stored_titles = dict(stored_titles or {})
        self._servers: dict[str, DownstreamServer] = {}
        self._debouncers: dict[str, Debouncer] = {}
        self._on_change: OnChange | None = None
        self._lock = asyncio.Lock()
        for key, server in self._by_slug(config.servers).items():
            self._add(key, server)

    @property
    def servers(self) -> Mapping[str, LiveServer]:
        """All servers by slug, including those that are switched off."""
        return MappingProxyType(self._servers)

    def states(self) -> dict[str, ConnectionState]:
        """Return the state of each server."""
        return {key: server.state for key, server in self._servers.items()}

    def tripped_breakers(self) -> Counter[tuple[str, str]]:
        """Count by server and state the circuit breakers of tenants that are not closed."""
        states = ((key, state) for key, server in self._servers.items() for state in server.breaker_states())
        return Counter((key, state) for key, state in states if state != "closed")

    def is_per_user(self, key: str) -> bool:
        """Tell whether a server lists tools for each user, with a token of their own."""
        return key in self._servers and self._servers[key].config.per_user

    async def missing_sign_ins(self, scope: Scope) -> dict[str, str]:
        """Return the servers that a user has to sign in to before they can call them, each with how."""
        hints = {key: await server.missing_sign_in(scope) for key, server in list(self._servers.items())}
        return {key: hint for key, hint in hints.items() if hint}

    def for_each_caller(self) -> list[str]:
        """Return the servers that list tools for each user with a token that is exchanged for the caller's."""
        configs = {key: server.config for key, server in self._servers.items() if server.config.enabled}
        return [key for key, config in configs.items() if config.per_user and config.exchanges_tokens]

    async def list_tools_of(self, key: str, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """Return the definitions that a server lists for a user, with a token of their own."""
        return await self._servers[key].list_tools_of(caller)

    def config_of(self, key: str) -> ServerConfig | None:
        """Return the config of a server."""
        return self._servers[key].config if key in self._servers else None

    async def start(self, on_change: OnChange) -> None:
        """Start to connect to all servers and return at once. `on_change` gets the slug of each server that changed."""
        self._on_change = on_change
        if self._reaper.adopts:
            self._collector = asyncio.create_task(self._collect_orphans())
        for server in self._servers.values():
            server.start()

    async def apply(self, config: Config) -> None:
        """Follow an edit of the config: connect, close or reconnect only the servers that differ."""
        async with self._lock:
            configs = self._by_slug(config.servers)
            unchanged = {
                key
                for key in configs.keys() & self._servers.keys()
                if _same_connection(self._servers[key].config, configs[key])
            }
            await asyncio.gather(*(self._drop(key) for key in self._servers.keys() - unchanged))
            for key in unchanged:
                if self._servers[key].config != configs[key]:
                    self._servers[key].config = configs[key]
                    self._debouncers[key].trigger()
            for key in configs.keys() - unchanged:
                self._add(key, configs[key])
                if self._on_change is not None:
                    self._servers[key].start()

    async def restart(self, key: str) -> None:
        """End the sessions and processes of a server, and connect again."""
        async with self._lock:
            if key in self._servers:
                config = self._servers[key].config
                await self._drop(key)
                self._add(key, config)
                if self._on_change is not None:
                    self._servers[key].start()

    def report_again(self, key: str) -> None:
        """Report a server as changed, as soon as its interval allows. A server that was removed is not reported."""
        if key in self._debouncers:
            self._debouncers[key].trigger()

    async def close(self) -> None:
        """End every session and every process."""
        async with self._lock:
            if self._collector is not None:
                self._collector.cancel()
            await asyncio.gather(*(self._drop(key) for key in list(self._servers)))
            await asyncio.to_thread(self._reaper.close)

    async def _collect_orphans(self) -> None:
        while True:
            await asyncio.sleep(_COLLECT_S)
            self._reaper.collect()

    def _add(self, key: str, config: ServerConfig) -> None:
        debouncer = Debouncer(lambda: self._notify(key), self._settings.reindex_interval_s)
        self._debouncers[key] = debouncer
        self._servers[key] = DownstreamServer(
            key,
            config,
            self._settings,
            self._reaper,
            on_change=debouncer.trigger,
            accounts=self._accounts,
            metrics=self._metrics,
        )

    async def _drop(self, key: str) -> None:
        await self._debouncers.pop(key).close()
        await self._servers.pop(key).close()

    async def _notify(self, key: str) -> None:
        server = self._servers.get(key)
        if self._on_change is None or server is None:
            return
        await self._on_change(key)
        if server.ttl_s is not None and key in self._debouncers:
            self._debouncers[key].trigger_in(server.ttl_s)

    def _by_slug(self, configs: Iterable[ServerConfig]) -> dict[str, ServerConfig]:
        titles = {**self._stored_titles, **{key: server.config.title for key, server in self._servers.items()}}
        by_title = {config.title: config for config in configs}
        return {slug: by_title[title] for title, slug in assign_slugs(by_title, titles).items()}


def _same_connection(one: ServerConfig, other: ServerConfig) -> bool:
    """Return whether two configs connect to a server in the same way. What they say about its tools may differ."""
    blank = {"overlay": Overlay(), "tool_overlays": {}, "trusted": True, "extra": {}, "source": "", "tenants": None}
    return replace(one, **blank) == replace(other, **blank)  # type: ignore[arg-type]
