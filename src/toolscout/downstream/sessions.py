"""Open sessions with one server: each is held by its own task, and no caller uses the session of another tenant."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import httpx2

from toolscout.config import ServerConfig
from toolscout.downstream.connect import first_cause
from toolscout.downstream.in_flight import CURRENT_REQUEST
from toolscout.downstream.session import Session
from toolscout.errors import ServerUnavailableError, SignInRequiredError, ToolscoutError
from toolscout.models import LOCAL, Caller
from toolscout.telemetry.spans import leave_trace

IDLE_S = 300.0
"""How long a session without calls stays open."""

MAX_SESSIONS = 64
"""How many sessions, of tenants and of users with their own credentials, one server may have at once."""


_FREE_S = 1.0


class SessionTask:
    """A task that opens one session, holds it open and closes it. Callers are other tasks and only borrow it.

    The SDK's context managers must be left in the task that entered them.
    """

    def __init__(
        self, title: str, connect: Callable[[], AbstractAsyncContextManager[Session]], timeout_s: float
    ) -> None:
        """Start to open the session. `ready` waits for it."""
        self._title = title
        self._connect = connect
        self._timeout_s = timeout_s
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        self.used_at = time.monotonic()
        self.users = 0
        self._task = asyncio.create_task(self._run())

    @property
    def opened(self) -> bool:
        """Whether the session was ever open."""
        return self._ready.done() and self._ready.exception() is None

    @property
    def over(self) -> bool:
        """Whether the session can no longer be used, even if it is still being closed."""
        if not self._ready.done():
            return False
        return self.ended.is_set() or self._ready.exception() is not None or self._ready.result().closed.is_set()

    @property
    def idle(self) -> bool:
        """Whether no call uses the session now."""
        return self.users == 0 and self._ready.done()

    async def ready(self) -> Session:
        """Return the session once it is open. Raise ServerUnavailableError if it could not be opened."""
        return await asyncio.shield(self._ready)

    def stop(self) -> None:
        """Tell the task to close the session."""
        self._stop.set()

    async def close(self) -> None:
        """Close the session and wait until it is closed."""
        self._stop.set()
        if not self._ready.done():
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        CURRENT_REQUEST.set(None)  # the session outlives the call that opens it
        leave_trace()
        try:
            async with asyncio.timeout(self._timeout_s) as deadline, self._connect() as session:
                deadline.reschedule(None)
                self._ready.set_result(session)
                closed = asyncio.ensure_future(session.closed.wait())
                stop = asyncio.ensure_future(self._stop.wait())
                try:
                    await asyncio.wait([closed, stop], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    closed.cancel()
                    stop.cancel()
                session.lose("it was closed")
        except TimeoutError:
            self._fail(
                f"{self._title} did not answer within {self._timeout_s:g} s",
                hint="npx and uvx download a server first: try again, or raise TOOLSCOUT_CONNECT_TIMEOUT_S",
            )
        except BaseException as error:  # noqa: BLE001 - callers that wait for the session must learn of every failure
            cause = first_cause(error)
            if isinstance(cause, SignInRequiredError):
                self._fail_with(cause)
            elif isinstance(cause, ToolscoutError):
                self._fail(cause.message, hint=cause.hint)
            else:
                self._fail(type(cause).__name__)
        finally:
            self.ended.set()

    def _fail(self, reason: str, hint: str = "") -> None:
        self._fail_with(ServerUnavailableError(reason, hint=hint or "start it by hand and read its output"))

    def _fail_with(self, error: ServerUnavailableError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # marks the error as retrieved, since there may be no caller


class SessionPool:
    """The sessions of one server by tenant or user, in addition to the first session.

    The first session belongs to the local tenant, and to all tenants if they share it. A user whose credentials are in
    the config, who signs in for themselves, or whose token is exchanged, has a session that is opened with them and
    shared with nobody. All others use the server's credentials.
    """

    def __init__(
        self, config: ServerConfig, open_one: Callable[[ServerConfig, httpx2.Auth | None], SessionTask]
    ) -> None:
        """Take the function that opens a session, with the token of a caller. It is called on demand."""
        self._config = config
        self._open_one = open_one
        self._sessions: dict[tuple[str, str | None, str], SessionTask] = {}
        self._closing: set[SessionTask] = set()
        self._freed = asyncio.Event()

    def uses_first_session(self, caller: Caller) -> bool:
        """Return whether a caller uses the first session."""
        if self._config.per_user or self._config.exchanges_tokens:
            return False
        return (self._config.shared or caller.tenant == LOCAL) and self._config.for_user(caller) is None

    @asynccontextmanager
    async def session(
        self, caller: Caller, auth: httpx2.Auth | None = None, sign_in: str = ""
    ) -> AsyncIterator[Session]:
        """Lend the session of a tenant, or of a user with their own credentials. Open it if there is none.

        While all sessions are busy, the call waits for one that is free, within its deadline.

        `auth` adds the caller's own token. `sign_in` stands for it: with another one, a new session is opened.
        """
        user_config = self._config.for_user(caller)
        own = user_config is not None or auth is not None
        key = caller.tenant, caller.user if own else None, sign_in
        while (task := self._sessions.get(key)) is None or task.over:
            if not self._make_space():
                with suppress(TimeoutError):  # a session that was opened in vain tells nobody that it is free
                    async with asyncio.timeout(_FREE_S):
                        await self._freed.wait()
                self._freed.clear()
                continue
            if task is not None:
                self._closing.add(task)
            task = self._sessions[key] = self._open_one(user_config or self._config, auth)
        task.users += 1
        try:
            yield await task.ready()
        finally:
            task.users -= 1
            task.used_at = time.monotonic()
            if not task.users:
                self._freed.set()

    async def close_idle(self) -> None:
        """Close idle sessions, in an endless loop."""
        while True:
            await asyncio.sleep(IDLE_S / 2)
            self._closing = {task for task in self._closing if not task.ended.is_set()}
            for key, task in list(self._sessions.items()):
                if task.idle and time.monotonic() - task.used_at > IDLE_S:
                    del self._sessions[key]
                    await task.close()

    async def close(self) -> None:
        """Close all sessions."""
        tasks = [*self._sessions.values(), *self._closing]
        self._sessions.clear()
        await asyncio.gather(*(task.close() for task in tasks))

    def _make_space(self) -> bool:
        """Close the least recently used session if the pool is full. It never awaits, so no call can interfere.

        Return whether there is space. If not, all sessions are busy.
        """
        if len(self._sessions) < MAX_SESSIONS:
            return True
        idle = [key for key, task in self._sessions.items() if task.idle]
        if not idle:
            return False
        oldest = self._sessions.pop(min(idle, key=lambda key: self._sessions[key].used_at))
        oldest.stop()
        self._closing.add(oldest)
        return True
