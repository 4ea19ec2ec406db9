"""Taking turns: of all processes over one store, one at a time indexes a given server.

A turn is a lease in the store, held while a server's listing is indexed, renewed meanwhile, and given back at the end.
Whoever has no turn waits with its listing: what the other published serves both, and when it asks again the stamps say
that nothing is left to do. A process that dies loses its turns when their time is over.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from toolscout.errors import ToolscoutError
from toolscout.models import Scope
from toolscout.ports import Store
from toolscout.settings import Settings

_ANY_REPLICA = "any replica"
_LEAST_S = 0.1


@dataclass(slots=True, kw_only=True)
class HeldLeases:
    """The servers whose turn it is, each with the moment until which that is certain."""

    until: dict[str, float] = field(default_factory=dict)

    @property
    def lost(self) -> list[str]:
        """Return the servers that another process may have indexed meanwhile, because a renewal came too late."""
        now = time.monotonic()
        return [server for server, until in self.until.items() if until < now]


class Leases:
    """Asks the store for the right to index the servers of a scope, in the name of this process."""

    def __init__(self, store: Store, scope: Scope, settings: Settings) -> None:
        """Take the store that all replicas share; every process has a name of its own."""
        self._store = store
        self._scope = scope
        self._ttl_s = max(settings.lease_s, _LEAST_S)
        self._remembered_s = settings.unavailable_s
        self._holder = secrets.token_hex(8)
        self._noted: dict[str, float] = {}

    @property
    def retry_s(self) -> float:
        """Return how long to wait before asking again for a turn that another process has."""
        return self._ttl_s / 10

    @asynccontextmanager
    async def take(self, servers: Iterable[str]) -> AsyncIterator[HeldLeases]:
        """Hold the turns that are free, renewed until the end of the block; those of others are left out."""
        turn = HeldLeases()
        renewing: asyncio.Task[None] | None = None
        try:
            for server in servers:
                await self._renew(turn, server)
            renewing = asyncio.create_task(self._keep(turn))
            yield turn
        finally:
            if renewing is not None:
                renewing.cancel()
                await asyncio.gather(renewing, return_exceptions=True)
            for server in turn.until:
                with suppress(ToolscoutError):  # it runs out by itself
                    await self._store.release(self._name("index", server), self._holder)

    async def note_reached(self, servers: Iterable[str]) -> None:
        """Write down for all replicas that this one reaches these servers; seldom, as it is remembered for long."""
        now = time.monotonic()
        for server in servers:
            if now - self._noted.get(server, -self._remembered_s) >= self._remembered_s / 4:
                await self._store.lease(self._name("reach", server), _ANY_REPLICA, self._remembered_s)
                self._noted[server] = now

    async def reached_by_none(self, server: str) -> bool:
        """Tell whether no replica has reached a server for as long as its tools are kept."""
        name = self._name("reach", server)
        free = await self._store.lease(name, self._holder, self._ttl_s)
        if free:
            self._noted.pop(server, None)
            await self._store.release(name, self._holder)
        return free

    async def _keep(self, turn: HeldLeases) -> None:
        while True:
            await asyncio.sleep(self._ttl_s / 3)
            for server in list(turn.until):
                with suppress(ToolscoutError):  # the turn then counts as lost once its time is over
                    await self._renew(turn, server)

    async def _renew(self, turn: HeldLeases, server: str) -> None:
        asked = time.monotonic()
        if await self._store.lease(self._name("index", server), self._holder, self._ttl_s):
            turn.until[server] = asked + self._ttl_s

    def _name(self, kind: str, server: str) -> str:
        return f"{kind}:{self._scope.tenant}/{self._scope.owner or ''}:{server}"
