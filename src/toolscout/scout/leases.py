"""Leases: of all processes that share a store, one at a time indexes a given server of a given scope.

A lease is held while a server is indexed, renewed meanwhile, and released at the end. A process that dies loses its
leases when they expire. Within one process, a lease works as a lock.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from toolscout.errors import StoreError, ToolscoutError
from toolscout.models import LOCAL, Scope
from toolscout.ports import Store
from toolscout.settings import Settings

_ANY_REPLICA = "any replica"
_SHORTEST_S = 0.1
_ATTEMPTS = 20
"""How often to ask for a lease of another process: over twice its lifetime, so that a dead holder's lease expires."""


@dataclass(slots=True, kw_only=True)
class HeldLeases:
    """The leases of some servers of a scope, each with the time until which it certainly holds."""

    scope: Scope
    until: dict[str, float] = field(default_factory=dict)

    @property
    def lost(self) -> list[str]:
        """Return the servers whose lease expired: another process may have indexed them meanwhile."""
        now = time.monotonic()
        return [server for server, until in self.until.items() if until < now]


class Leases:
    """Takes leases from the store in the name of this process."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._ttl_s = max(settings.lease_s, _SHORTEST_S)
        self._unavailable_s = settings.unavailable_s
        self._holder = secrets.token_hex(8)
        self._local: set[str] = set()
        self._local_release = asyncio.Event()
        self._reached_at: dict[str, float] = {}

    @property
    def retry_s(self) -> float:
        """Return how long to wait before asking again for a lease of another process."""
        return self._ttl_s / 10

    @asynccontextmanager
    async def hold(self, scope: Scope, servers: Iterable[str]) -> AsyncIterator[HeldLeases]:
        """Hold the leases of all these servers.

        Waits for other tasks of this process, and for a bounded time for other processes: then it raises StoreError.
        """
        slugs = set(servers)
        names = {_lease_name(scope, slug) for slug in slugs}
        missing = ""
        for _ in range(_ATTEMPTS):
            while not self._local.isdisjoint(names):
                await self._local_release.wait()
            async with self.try_hold(scope, slugs) as leases:
                if leases.until.keys() == slugs:
                    yield leases
                    return
                missing = ", ".join(sorted(slugs - leases.until.keys()))
            await asyncio.sleep(self.retry_s)
        raise StoreError(
            f"another process is indexing {missing}; nothing was changed", hint="try again when it has finished"
        )

    @asynccontextmanager
    async def try_hold(self, scope: Scope, servers: Iterable[str]) -> AsyncIterator[HeldLeases]:
        """Hold those of the leases that are free, without waiting for the others."""
        names = {slug: _lease_name(scope, slug) for slug in sorted(servers)}
        names = {slug: name for slug, name in names.items() if name not in self._local}
        self._local.update(names.values())
        leases = HeldLeases(scope=scope)
        renewal: asyncio.Task[None] | None = None
        try:
            for slug in names:
                await self._renew(leases, slug)
            renewal = asyncio.create_task(self._keep_renewing(leases))
            yield leases
        finally:
            if renewal is not None:
                renewal.cancel()
                await asyncio.gather(renewal, return_exceptions=True)
            try:
                for slug in leases.until:
                    with suppress(ToolscoutError):  # it expires by itself
                        await self._store.release(names[slug], self._holder)
            finally:
                self._local.difference_update(names.values())
                self._local_release.set()
                self._local_release = asyncio.Event()

    async def note_reached(self, servers: Iterable[str]) -> None:
        """Record for all replicas that this one reaches these live servers. It is rarely renewed, as it lasts long."""
        now = time.monotonic()
        for server in servers:
            if now - self._reached_at.get(server, -self._unavailable_s) >= self._unavailable_s / 4:
                await self._store.lease(_reach_name(server), _ANY_REPLICA, self._unavailable_s)
                self._reached_at[server] = now

    async def reached_by_none(self, server: str) -> bool:
        """Tell whether no replica has reached a live server for as long as the tools of one that is down are kept."""
        name = _reach_name(server)
        free = await self._store.lease(name, self._holder, self._ttl_s)
        if free:
            self._reached_at.pop(server, None)
            await self._store.release(name, self._holder)
        return free

    async def _keep_renewing(self, leases: HeldLeases) -> None:
        while True:
            await asyncio.sleep(self._ttl_s / 3)
            for slug in list(leases.until):
                with suppress(ToolscoutError):  # the lease then counts as lost once it expires
                    await self._renew(leases, slug)

    async def _renew(self, leases: HeldLeases, slug: str) -> None:
        started = time.monotonic()
        if await self._store.lease(_lease_name(leases.scope, slug), self._holder, self._ttl_s):
            leases.until[slug] = started + self._ttl_s


def _lease_name(scope: Scope, server: str) -> str:
    return f"index:{scope.tenant}/{scope.owner or ''}:{server}"


def _reach_name(server: str) -> str:
    """Name the record that a live server is reached, whatever tenants it is indexed for."""
    return f"reach:{LOCAL}/:{server}"
