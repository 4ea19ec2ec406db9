"""The servers behind a catalogue: live ones, and sources that were indexed by hand."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cachetools import TTLCache

from toolscout.config import Config, ServerConfig
from toolscout.errors import ServerUnavailableError
from toolscout.models import LOCAL, Caller, Scope, ServerStatus
from toolscout.ports import CustomServer, LiveServer, Store, ToolSource
from toolscout.scout.accounts import Accounts
from toolscout.settings import Settings
from toolscout.telemetry import AuditLog, Metrics

if TYPE_CHECKING:
    from toolscout.downstream.debounce import Debouncer
    from toolscout.downstream.servers import DownstreamServers

_MAX_CALLERS = 4_096
_CALLER_S = 600.0


class LiveServers:
    """The live servers by slug: those of the config, and custom ones that the program brings itself."""

    def __init__(
        self,
        settings: Settings,
        custom: Sequence[CustomServer] = (),
        store: Store | None = None,
        audit: AuditLog | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Take the servers that a program brings. Without a store, nobody is signed in anywhere."""
        self._settings = settings
        self._metrics = metrics or Metrics()
        self.accounts = Accounts(store, settings, audit or AuditLog()) if store else None
        """The accounts of people at servers, if there is a store."""
        self._custom = {server.server.key: server for server in custom}
        self._debouncers: dict[str, Debouncer] = {}
        self._downstream: DownstreamServers | None = None
        self._servers: dict[str, LiveServer] = dict(self._custom)
        self._tenants: set[str] = {LOCAL}
        self._users: dict[str, set[Scope]] = {}
        self._callers: TTLCache[tuple[str, Scope], Caller] = TTLCache(_MAX_CALLERS, _CALLER_S)
        self._listings: set[asyncio.Task[None]] = set()
        self._signed_in_to: dict[str, ServerConfig] = {}
        self._dropped: dict[str, ServerConfig] = {}
        self._on_user: Callable[[str, Scope], Coroutine[Any, Any, None]] | None = None
        self._reach: dict[str, frozenset[str]] = {}
        self.adopt_orphans = False
        """Whether all children of this process are its servers', so that none of their descendants outlives it."""
        self.changes = 0
        """A counter that grows whenever a server comes, goes, or reports that one of its lists changed."""

    @property
    def keys(self) -> frozenset[str]:
        """Return the slugs of the servers that are enabled."""
        return frozenset(key for key, state in self.states().items() if state != "disabled")

    def get(self, key: str) -> LiveServer | None:
        """Return a server by its slug."""
        return self._servers.get(key)

    def statuses(self) -> list[ServerStatus]:
        """Return the status of each server, in the order of slugs."""
        return [self._servers[key].status for key in sorted(self._servers)]

    def states(self) -> dict[str, str]:
        """Return the state of each server. That costs less than the whole status, which reads a server's output."""
        states = self._downstream.states() if self._downstream else {}
        return {key: states.get(key) or server.status.state for key, server in self._servers.items()}

    def tripped_breakers(self) -> Counter[tuple[str, str]]:
        """Count for each server of the config the tenants whose circuit breaker is `open` or `half_open`."""
        return self._downstream.tripped_breakers() if self._downstream else Counter()

    def ready(self) -> list[str]:
        """Return the slugs of the servers that are connected, in order."""
        return sorted(key for key, state in self.states().items() if state == "ready")

    async def down(self, caller: Caller) -> dict[str, str]:
        """Return the slugs of the servers that a caller cannot call now, each with what a person does, if known.

        They are down, or nobody is signed in.
        """
        down = {
            key: self._servers[key].status.hint if state == "needs_login" else ""
            for key, state in self.states().items()
            if state in ("failed", "needs_login")
        }
        return down | await self.missing_sign_ins(caller)

    async def missing_sign_ins(self, caller: Caller) -> dict[str, str]:
        """Return the servers that a caller has to sign in to for themselves before they call them, each with how."""
        if self._downstream is None or caller.user is None:
            return {}
        missing = await self._downstream.missing_sign_ins(caller.scope)
        return {key: hint for key, hint in missing.items() if self._serves(key, caller.tenant)}

    def reach(self, tenant: str) -> frozenset[str]:
        """Return the slugs of the servers that callers of a tenant may reach.

        A server without `tenants` is indexed for the local tenant. Others reach it when its tools were indexed for
        them too, as `toolscout index --tenant` does, which cannot be where each user signs in.
        """
        reach = self._reach.get(tenant)
        if reach is None:
            reach = frozenset(key for key in self.keys if self._serves(key, tenant))
            self._reach[tenant] = reach
            if self._downstream is not None:
                self.add_tenants({tenant})
        return reach

    def is_per_user(self, key: str) -> bool:
        """Tell whether each user has a token and tools of their own at a server."""
        return self._downstream is not None and self._downstream.is_per_user(key)

    async def list_tools(self, key: str, scope: Scope) -> Sequence[Mapping[str, Any]]:
        """List the tools of a server: those of one user if each has their own, else those of everyone."""
        if self._downstream is not None and self._downstream.is_per_user(key):
            caller = self._callers.get((key, scope)) or Caller(tenant=scope.tenant, user=scope.owner)
            return await self._downstream.list_tools_of(key, caller)
        return await self._servers[key].list_tools()

    async def find_users(self, key: str) -> list[Scope]:
        """Return the users who are signed in to a server for themselves, or came with a token a short time ago."""
        scopes = await self.accounts.users_of(key) if self.accounts else []
        scopes += [scope for name, scope in self._callers if name == key]
        found = {scope for scope in scopes if self._serves(key, scope.tenant)}
        self._users[key] = found | self._users.get(key, set())
        return sorted(found, key=lambda scope: (scope.tenant, scope.owner or ""))

    def config_of(self, key: str) -> ServerConfig | None:
        """Return the config of a server that is not a custom one."""
        return self._downstream.config_of(key) if self._downstream else None

    def note_caller(self, caller: Caller) -> None:
        """List what servers list for a caller alone, if this one comes for the first time in a while."""
        if caller.token is None or caller.user is None or self._downstream is None or self._on_user is None:
            return
        for key in self._downstream.for_each_caller():
            place = key, caller.scope
            if not self._serves(key, caller.tenant):
                continue
            if place not in self._callers:
                task = asyncio.create_task(self._on_user(key, caller.scope))
                self._listings.add(task)
                task.add_done_callback(self._listings.discard)
                self._callers[place] = caller
            elif self._callers[place].token != caller.token:
                self._callers[place] = caller

    def add_user(self, key: str, scope: Scope) -> None:
        """Add a user who has tools of their own at a server."""
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
            metrics=self._metrics,
        )
        self._update()
        self._note_dropped(config)

    async def start(
        self,
        on_change: Callable[[str], Awaitable[None]],
        on_user: Callable[[str, Scope], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Begin to connect and return at once. `on_change` gets the slug of each server that changed.

        `on_user` gets the slug of a server and a user whose tools there have to be listed.
        """
        from toolscout.downstream.debounce import Debouncer

        self._on_user = on_user

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
            self._note_dropped(config)

    def list_again(self, key: str) -> None:
        """Report a server as changed, as soon as the debouncing interval allows."""
        if key in self._debouncers:
            self._debouncers[key].trigger()
        elif self._downstream is not None:
            self._downstream.report_again(key)

    async def restart(self, key: str) -> None:
        """End a server's sessions and processes, and connect again. A custom server is only listed again."""
        if self._downstream is not None and key in self._downstream.servers:
            await self._downstream.restart(key)
            self._update()
        else:
            self.list_again(key)

    async def forget_accounts(self, scope: Scope, key: str) -> None:
        """Remove the accounts at a server of one user, or of a whole tenant. If it left the config, remove all."""
        for place, _ in await self.accounts.find_all_places(key) if self.accounts else ():
            if key not in self._servers or place == scope or (scope.owner is None and place.tenant == scope.tenant):
                await self._forget(place, key)

    @property
    def has_dropped(self) -> bool:
        """Whether there may be accounts at servers that left the config, or that nobody signs in to any more."""
        return bool(self._dropped)

    async def forget_dropped(self) -> None:
        """Remove these accounts, of all tenants and users."""
        for key, config in tuple(self._dropped.items()):
            for place, _ in await self.accounts.find_all_places(key) if self.accounts else ():
                await self._forget(place, key)
            if self.accounts:
                await self.accounts.clients.forget(key)
            if self._dropped.get(key) is config:
                del self._dropped[key]

    async def forget_user(self, scope: Scope) -> None:
        """Remove all accounts of a user."""
        for _, key in await self.accounts.find_all_places(scope=scope) if self.accounts else ():
            await self._forget(scope, key)

    async def _forget(self, scope: Scope, key: str) -> None:
        assert self.accounts is not None  # noqa: S101 - it found the account
        await self.accounts.forget_and_revoke_later(scope, key, self._dropped.get(key) or self.config_of(key))

    async def revoked(self) -> None:
        """Wait until the tokens of removed accounts are revoked, as far as their issuers answer."""
        if self.accounts:
            await self.accounts.revocations.settled()

    async def close(self) -> None:
        """End every session and process."""
        self._on_user = None
        for task in tuple(self._listings):
            task.cancel()
        await asyncio.gather(*self._listings, return_exceptions=True)
        for debouncer in self._debouncers.values():
            await debouncer.close()
        for server in self._custom.values():
            await server.close()
        if self._downstream is not None:
            await self._downstream.close()
        if self.accounts:
            await self.accounts.revocations.close()

    def _serves(self, key: str, tenant: str) -> bool:
        tenants = self._servers[key].tenants
        if tenants is None:
            return tenant == LOCAL or not self.is_per_user(key)
        return tenants == "all" or tenant in tenants

    def _note_dropped(self, config: Config) -> None:
        """Note the servers that people could sign in to and now cannot. What a mistake in a file hides, is not gone."""
        assert self._downstream is not None  # noqa: S101 - the config was given to it
        broken = {server.source for server in config.servers if server.problem}
        now = {key: self.config_of(key) for key in self._downstream.servers}
        known = {key: server for key, server in now.items() if server is not None and server.allows_sign_in}
        gone = {key: old for key, old in self._signed_in_to.items() if key not in known and old.source not in broken}
        self._dropped = {key: old for key, old in {**self._dropped, **gone}.items() if key not in known}
        self._signed_in_to = {key: old for key, old in {**self._signed_in_to, **known}.items() if key not in gone}

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
        await self._live.revoked()

    async def remove_user(self, scope: Scope) -> None:
        """Forget all sources of a user, and their accounts."""
        self.forget(scope)
        await self._live.forget_user(scope)
        await self._live.revoked()

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
        """Limit the caller to the servers that their tenant reaches. Without live servers, there is no limit.

        A caller who is new here gets the tools that servers list for them, a moment later.
        """
        if not self.connected:
            return caller
        self._live.note_caller(caller)
        shared = Scope(tenant=caller.tenant)
        by_hand = {server for scope, server in self._by_hand if scope == shared}
        return replace(caller, servers=self._live.reach(caller.tenant) | by_hand)
