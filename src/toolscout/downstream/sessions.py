"""Open sessions with one server: each is held by a task of its own, and no caller uses a session of another tenant."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from toolscout.config import ServerConfig
from toolscout.downstream.connect import first_cause
from toolscout.downstream.session import Session
from toolscout.errors import ServerUnavailableError, ToolscoutError
from toolscout.models import LOCAL, Caller

IDLE_S = 300.0
"""How long a session without calls stays open."""

MOST = 64
"""How many sessions, of tenants and of users with their own credentials, one server may have at once."""


class SessionTask:
    """One session with its owner; callers are other tasks and only ever borrow it."""

    def __init__(
        self, title: str, opened: Callable[[], AbstractAsyncContextManager[Session]], connect_s: float
    ) -> None:
        """Begin to open; `ready` waits for that."""
        self._title = title
        self._opened = opened
        self._connect_s = connect_s
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        self.used_at = time.monotonic()
        self.users = 0
        self.reason = ""
        self._task = asyncio.create_task(self._own())

    @property
    def opened(self) -> bool:
        """Whether it was ever open."""
        return self._ready.done() and self._ready.exception() is None

    @property
    def over(self) -> bool:
        """Whether nothing more can come of it, even if it is still being closed."""
        if not self._ready.done():
            return False
        return self.ended.is_set() or self._ready.exception() is not None or self._ready.result().closed.is_set()

    @property
    def idle(self) -> bool:
        """Whether nobody uses it now."""
        return self.users == 0 and self._ready.done()

    async def ready(self) -> Session:
        """Return the session once it is open; raise ServerUnavailableError when that failed."""
        return await asyncio.shield(self._ready)

    def stop(self) -> None:
        """Ask the owner to close it."""
        self._stop.set()

    async def close(self) -> None:
        """Close it and wait until everything of it is gone."""
        self._stop.set()
        if not self._ready.done():
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait([self._task])

    async def _own(self) -> None:
        try:
            async with asyncio.timeout(self._connect_s) as clock, self._opened() as session:
                clock.reschedule(None)
                self._ready.set_result(session)
                lost = asyncio.ensure_future(session.closed.wait())
                stop = asyncio.ensure_future(self._stop.wait())
                try:
                    await asyncio.wait([lost, stop], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    lost.cancel()
                    stop.cancel()
                self.reason = session.reason
                session.lose("it was closed")
        except TimeoutError:
            self._fail(
                f"{self._title} did not answer within {self._connect_s:g} s",
                hint="if it only needs longer, raise TOOLSCOUT_CONNECT_TIMEOUT_S",
            )
        except BaseException as error:  # noqa: BLE001 - whatever ended the session, those who wait for it must learn it
            found = first_cause(error)
            said = found.message if isinstance(found, ToolscoutError) else type(found).__name__
            self._fail(said, hint=found.hint if isinstance(found, ToolscoutError) else "")
        finally:
            self.ended.set()

    def _fail(self, reason: str, hint: str = "") -> None:
        self.reason = self.reason or reason
        if not self._ready.done():
            self._ready.set_exception(
                ServerUnavailableError(reason, hint=hint or "start it by hand and read what it says")
            )
            self._ready.exception()  # nobody may be waiting


class SessionPool:
    """The sessions of one server beyond the first, which is the local tenant's and everyone's where they share.

    A user whose credentials the config lists has a session of their own, which is opened with these and shared with
    nobody; for all others the credential is the server's.
    """

    def __init__(
        self, config: ServerConfig, open_one: Callable[[ServerConfig], SessionTask], *, idle_s: float = IDLE_S
    ) -> None:
        """Open sessions with `open_one` when they are needed."""
        self._config = config
        self._open_one = open_one
        self._idle_s = idle_s
        self._sessions: dict[tuple[str, str | None], SessionTask] = {}
        self._leaving: set[SessionTask] = set()

    def at_home(self, caller: Caller) -> bool:
        """Say whether a caller uses the first session."""
        return (self._config.shared or caller.tenant == LOCAL) and self._config.for_user(caller) is None

    @asynccontextmanager
    async def session(self, caller: Caller) -> AsyncIterator[Session]:
        """Lend a tenant's session, or a user's own, opened where there is none."""
        own = self._config.for_user(caller)
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
