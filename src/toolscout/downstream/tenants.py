"""Sessions of tenants, and of users with credentials of their own: nobody uses a session that is another's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from toolscout.config import ServerConfig
from toolscout.downstream.owned import Owned
from toolscout.downstream.session import Session
from toolscout.errors import ServerUnavailableError
from toolscout.models import LOCAL, Caller

IDLE_S = 300.0
"""How long a tenant's session is kept without use."""

MOST = 64
"""How many tenants, and users with credentials of their own, may have a session with one server at once."""


class Tenants:
    """The sessions of one server beyond the first, which is the local tenant's and everyone's where they share.

    A user whose credentials the config lists has a session of their own, which is opened with these and shared with
    nobody; for all others the credential is the server's.
    """

    def __init__(
        self, config: ServerConfig, open_one: Callable[[ServerConfig], Owned], *, idle_s: float = IDLE_S
    ) -> None:
        """Open sessions with `open_one` when they are needed."""
        self._config = config
        self._open_one = open_one
        self._idle_s = idle_s
        self._sessions: dict[tuple[str, str | None], Owned] = {}
        self._leaving: set[Owned] = set()

    def at_home(self, caller: Caller) -> bool:
        """Say whether a caller uses the first session."""
        return (self._config.shared or caller.tenant == LOCAL) and self._config.own(caller) is None

    @asynccontextmanager
    async def session(self, caller: Caller) -> AsyncIterator[Session]:
        """Lend a tenant's session, or a user's own, opened where there is none."""
        own = self._config.own(caller)
        whose = caller.tenant, caller.user if own else None
        owned = self._sessions.get(whose)
        if owned is None or owned.over:
            self._make_room()
            if owned is not None:
                self._leaving.add(owned)
            owned = self._sessions[whose] = self._open_one(own or self._config)
        owned.users += 1
        try:
            yield await owned.ready()
        finally:
            owned.users -= 1
            owned.used_at = time.monotonic()

    async def sweep(self) -> None:
        """Close sessions that nobody uses, for ever."""
        while True:
            await asyncio.sleep(self._idle_s / 2)
            self._leaving = {owned for owned in self._leaving if not owned.ended.is_set()}
            for whose, owned in list(self._sessions.items()):
                if owned.idle and time.monotonic() - owned.used_at > self._idle_s:
                    del self._sessions[whose]
                    await owned.close()

    async def close(self) -> None:
        """Close all."""
        sessions = [*self._sessions.values(), *self._leaving]
        self._sessions.clear()
        await asyncio.gather(*(owned.close() for owned in sessions))

    def _make_room(self) -> None:
        """Let the session go that was not used for longest; nothing here waits, so that nobody comes in between."""
        if len(self._sessions) < MOST:
            return
        idle = [
            (owned.used_at, number, whose) for number, (whose, owned) in enumerate(self._sessions.items()) if owned.idle
        ]
        if not idle:
            raise ServerUnavailableError(
                f"{self._config.title} serves {MOST} tenants already; nothing was sent", hint="try again later"
            )
        leaving = self._sessions.pop(min(idle)[2])
        leaving.stop()
        self._leaving.add(leaving)
