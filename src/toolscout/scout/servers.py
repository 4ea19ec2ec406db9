"""The servers behind a catalogue: live ones, and sources that were indexed by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from toolscout.config import Config, ServerConfig
from toolscout.errors import ServerUnavailableError, ToolscoutError
from toolscout.models import LOCAL, Caller, Scope, ServerStatus
from toolscout.ports import CustomServer, LiveServer, Store, ToolSource
from toolscout.scout.accounts import Accounts
from toolscout.settings import Settings
from toolscout.telemetry import AuditLog

if TYPE_CHECKING:
    from toolscout.downstream.debounce import Debouncer
    from toolscout.downstream.servers import DownstreamServers


class LiveServers:
    """The live servers by slug: those of the config, and custom ones that the program brings itself."""

    def __init__(
        self,
        settings: Settings,
        custom: Sequence[CustomServer] = (),
        store: Store | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        """Take the servers that a program brings. Without a store, nobody is signed in anywhere."""
        self._settings = settings
        self.accounts = Accounts(store, settings, audit or AuditLog()) if store else None
        """The accounts of people at servers, if there is a store."""
        self._custom = {server.server.key: server for server in custom}
        self._debouncers: dict[str, Debouncer] = {}
        self._downstream: DownstreamServers | None = None
        self._servers: dict[str, LiveServer] = dict(self._custom)
        self._tenants: set[str] = {LOCAL}
        self._users: dict[str, set[Scope]] = {}
        self._reach: dict[str, frozenset[str]] = {}
        self.adopt_orphans = False
        """Whether all children of this process are its servers', so that none of their descendants outlives it."""
        self.changes = 0
        """A counter that grows whenever a server comes, goes, or reports that one of its lists changed."""

    @property
    def keys(self) -> frozenset[str]:
        """Return the slugs of the servers that are enabled."""
        return frozenset(key for key, server in self._servers.items() if server.status.state != "disabled")

    def get(self, key: str) -> LiveServer | None:
        """Return a server by its slug."""
        return self._servers.get(key)

    def statuses(self) -> list[ServerStatus]:
        """Return the status of each server, in the order of slugs."""
        return [self._servers[key].status for key in sorted(self._servers)]

    def ready(self) -> list[str]:
        """Return the slugs of the servers that are connected, in order."""
        return [status.server for status in self.statuses() if status.state == "ready"]

    def down(self) -> dict[str, str]:
        """Return the slugs of the servers that cannot be called now, each with what a person does about it, if known.

        They are down, or nobody is signed in.
        """
        statuses = {key: server.status for key, server in self._servers.items()}
        return {
            key: status.hint if status.state == "needs_login" else ""
            for key, status in statuses.items()
            if status.state in ("failed", "needs_login")
        }

    def reach(self, tenant: str) -> frozenset[str]:
        """Return the slugs of the servers that callers of a tenant may reach.

        A server without `tenants` is indexed for the local tenant. Others reach it when its tools were indexed for
        them too, as `toolscout index --tenant` does.
        """
        reach = self._reach.get(tenant)
        if reach is None:
            reach = frozenset(key for key in self.keys if _serves(self._servers[key], tenant))
            self._reach[tenant] = reach
            if self._downstream is not None:
                self.add_tenants({tenant})
        return reach

    def is_per_user(self, key: str) -> bool:
        """Tell whether each user signs in to a server for themselves, and has tools of their own there."""
        return self._downstream is not None and self._downstream.is_per_user(key)

    async def list_tools(self, key: str, scope: Scope) -> Sequence[Mapping[str, Any]]:
        """List the tools of a server: those of one user if each signs in, else those of everyone."""
        if self._downstream is not None and self._downstream.is_per_user(key):
            return await self._downstream.list_tools_of(key, Caller(tenant=scope.tenant, user=scope.owner))
        return await self._servers[key].list_tools()

    async def find_users(self, key: str) -> list[Scope]:
        """Return the users who are signed in to a server for themselves."""
        scopes = await self.accounts.users_of(key) if self.accounts else []
        found = {scope for scope in scopes if _serves(self._servers[key], scope.tenant)}
        self._users[key] = found | self._users.get(key, set())
        return sorted(found, key=lambda scope: (scope.tenant, scope.owner or ""))

    def config_of(self, key: str) -> ServerConfig | None:
        """Return the config of a server that is not a custom one."""
        return self._downstream.config_of(key) if self._downstream else None

    def add_user(self, key: str, scope: Scope) -> None:
        """Add a user who signed in to a server for themselves."""
        self._users.setdefault(key, set()).add(scope)

    def scopes_of(self, key: str) -> list[Scope]:
        """Return the scopes that a server is indexed for: everyone's scope of each of its tenants, or its users'."""
        if self.is_per_user(key):
            return sorted(self._users.get(key, ()), key=lambda scope: (scope.tenant, scope.owner or ""))
        tenants = self._servers[key].tenants if key in self._servers else ()
        names = (LOCAL,) if tenants is None else self._tenants if tenants == "all" else tenants
        return [Scope(tenant=tenant) for tenant in sorted(names)]

    def targets(self) -> frozenset[tuple[Scope, str]]:
        """Return every scope and slug that an enabled server is indexed under."""
        return frozenset((scope, key) for key in self.keys for scope in self.scopes_of(key))

    def add_tenants(self, tenants: frozenset[str] | set[str]) -> None:
        """Add tenants. If one is new, servers for all tenants are listed again."""
        if tenants <= self._tenants:
            return
        self._tenants |= tenants
        for key, server in self._servers.items():
            if server.tenants == "all" and server.status.state == "ready":
                self.list_again(key)

    def configure(self, config: Config, stored_titles: Mapping[str, str]) -> None:
        """Take the servers of a config. Those of the catalogue (`stored_titles`, slug -> title) keep their slug."""
        from toolscout.downstream.servers import DownstreamServers

        custom = {key: server.server.title for key, server in self._custom.items()}
        self._downstream = DownstreamServers(
            config,
            self._settings,
            stored_titles={**stored_titles, **custom},
            adopt_orphans=self.adopt_orphans,
            accounts=self.accounts.stored if self.accounts else None,
        )
        self._update()

    async def start(self, on_change: Callable[[str], Awaitable[None]]) -> None:
        """Begin to connect and return at once. `on_change` gets the slug of each server that changed."""
        from toolscout.downstream.debounce import Debouncer

        async def count_change(key: str) -> None:
            self.changes += 1
            await on_change(key)

        for key, server in self._custom.items():
            self._debouncers[key] = Debouncer(partial(count_change, key), self._settings.reindex_interval_s)
            server.start(self._debouncers[key].trigger)
        if self._downstream is not None:
            await self._downstream.start(count_change)

    async def apply(self, config: Config) -> None:
        """Follow an edit of the config: only what differs is connected, closed or connected anew."""
        if self._downstream is not None:
            await self._downstream.apply(config)
            self._update()

    def list_again(self, key: str) -> None:
        """Report a server as changed, as soon as the debouncing interval allows."""
        if key in self._debouncers:
            self._debouncers[key].trigger()
        elif self._downstream is not None:
            self._downstream.report_again(key)

    async def forget_accounts(self, scope: Scope, key: str) -> None:
        """Remove the accounts of a server that left the config."""
        if self.accounts is not None:
            await self.accounts.forget_server(scope, key)

    async def close(self) -> None:
        """End every session and process."""
        for debouncer in self._debouncers.values():
            await debouncer.close()
        for server in self._custom.values():
            await server.close()
        if self._downstream is not None:
            await self._downstream.close()

    def _update(self) -> None:
        configured = self._downstream.servers if self._downstream else {}
        self._servers = {**configured, **self._custom}
        self._reach.clear()


class Sources:
    """By scope and slug, the source that lists and calls the tools of a server."""

    def __init__(self, live: LiveServers) -> None:
        self._live = live
        self._by_hand: dict[tuple[Scope, str], ToolSource] = {}
        self.connected = False
        """Whether live servers are connected: callers then reach these, whatever else the store holds."""

    def keep(self, scope: Scope, server: str, source: ToolSource) -> None:
        """Remember a source that was indexed by hand, so that its tools can be called and listed again."""
        self._by_hand[scope, server] = source

    def forget(self, scope: Scope, server: str | None = None) -> None:
        """Forget one source of a scope, or all of them."""
        for key in [key for key in self._by_hand if key[0] == scope and server in (None, key[1])]:
            del self._by_hand[key]

    async def remove(self, scope: Scope, server: str) -> None:
        """Forget one source of a scope, and the accounts of people at it."""
        self.forget(scope, server)
        await self._live.forget_accounts(scope, server)

    def by_hand(self, scope: Scope) -> list[ToolSource]:
        """Return the sources that were indexed by hand for a scope."""
        return [source for key, source in self._by_hand.items() if key[0] == scope]

    def find(self, scope: Scope, server: str) -> ToolSource:
        """Return the source of a server, or raise ServerUnavailableError when there is none."""
        source = self._by_hand.get((scope, server))
        everyones = scope.owner is None or self._live.is_per_user(server)
        if source is None and everyones and server in self._live.reach(scope.tenant):
            source = self._live.get(server)
        if source is None:
            raise ServerUnavailableError(
                f"no server {server} is connected",
                hint="name the config that lists it: `toolscout serve --config mcp.json`, or Scout.open('mcp.json')",
            )
        return source

    def narrow(self, caller: Caller) -> Caller:
        """Limit the caller to the servers that their tenant reaches. Without live servers, there is no limit."""
        if not self.connected:
            return caller
        shared = Scope(tenant=caller.tenant)
        by_hand = {server for scope, server in self._by_hand if scope == shared}
        return replace(caller, servers=self._live.reach(caller.tenant) | by_hand)


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


def _serves(server: LiveServer, tenant: str) -> bool:
    tenants = server.tenants
    return tenants is None or tenants == "all" or tenant in tenants
