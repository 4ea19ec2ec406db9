"""A session held open by a task of its own: what is entered in one task must be left in the same one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress

from toolscout.downstream.dial import first_cause
from toolscout.downstream.session import Session
from toolscout.errors import ServerUnavailableError, ToolscoutError


class Owned:
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
