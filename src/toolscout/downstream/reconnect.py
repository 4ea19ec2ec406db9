"""The first session of a server: opened again when it ends, and abandoned when a health check fails."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal

from mcp.shared.exceptions import MCPError

from toolscout.config import ServerConfig
from toolscout.downstream.failures import unavailable
from toolscout.downstream.http_client import NEEDS_LOGIN, UNREACHABLE
from toolscout.downstream.in_flight import NotSentError, call_timeout_s
from toolscout.downstream.process import StderrBuffer
from toolscout.downstream.session import Session
from toolscout.downstream.sessions import SessionTask
from toolscout.errors import ServerUnavailableError, SignInRequiredError
from toolscout.settings import Settings

ConnectionState = Literal["connecting", "ready", "needs_login", "failed", "disabled"]

HEALTH_CHECK_S = 30.0
"""How often a server behind a URL is checked: unlike a process, it does not tell us when it ends."""

_PING_S = 5.0
_CHECK_S = 1.0


class ReconnectingSession:
    """A session that is opened again with exponential backoff, and the state of its server.

    `on_change` is called when the server comes up or goes down.
    """

    def __init__(
        self,
        config: ServerConfig,
        settings: Settings,
        open_one: Callable[[], SessionTask],
        errors: StderrBuffer,
        on_change: Callable[[], None],
        on_alive: Callable[[], None] = lambda: None,
        signed_in: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """Take the function that opens a session. Nothing happens before `start`.

        `signed_in` waits until somebody has signed in to the server, for a while, and returns whether somebody has.
        """
        self._config = config
        self._settings = settings
        self._open_one = open_one
        self._errors = errors
        self._on_change = on_change
        self._on_alive = on_alive
        self._signed_in = signed_in
        self._checked_at = -math.inf
        self._current: SessionTask | None = None
        self._checking = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        if not config.enabled:
            self._settled.set()
        self.state: ConnectionState = "connecting" if config.enabled else "disabled"
        self.detail = ""
        self.hint = ""
        self.since = time.time()
        self.protocol = ""

    def start(self, *others: Coroutine[Any, Any, None]) -> None:
        """Start to connect in the background and keep trying. `others` are further tasks that run until `close`."""
        if self._config.problem:
            for work in others:
                work.close()
            self._set_state("failed", self._config.problem, self._config.problem_hint)
            return
        checks = [self._check_regularly()] if self._config.transport != "stdio" else []
        for work in (self._reconnect(), *checks, *others):
            self._spawn(work)

    def start_per_user(self, detail: str, *others: Coroutine[Any, Any, None]) -> None:
        """Open no session, because each user has their own. `others` are tasks that run until `close`."""
        for work in others:
            self._spawn(work)
        self._set_state("ready", detail)

    def wait_for_sign_in(self, error: SignInRequiredError) -> None:
        """Wait until somebody signs in, though the session is open, and then open another one."""
        self._set_state("needs_login", error.message, error.hint)
        if self._current is not None:
            self._spawn(self._reopen_signed_in(self._current))

    async def close(self) -> None:
        """End the session and all tasks."""
        for task in list(self._tasks):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._current is not None:
            await self._current.close()
        self._set_state("disabled", "it was closed")

    async def session(self) -> Session:
        """Return the session, waiting while it is being opened. Fail at once if the server is down."""
        while True:
            await self._settled.wait()
            if self.state != "ready" or self._current is None:
                raise unavailable(self._config.title, self.state, self.detail, self.hint)
            session = await self._current.ready()
            if not session.closed.is_set():
                return session
            await asyncio.sleep(0)  # lets the task that reconnects see that the session has ended

    def check(self) -> None:
        """Start a health check, unless one is running."""
        now = time.monotonic()
        recently = now - self._checked_at < _CHECK_S
        if not (self._checking or recently) and self._current is not None and self.state == "ready":
            self._checking, self._checked_at = True, now
            self._spawn(self._check(self._current))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _set_state(self, state: ConnectionState, detail: str = "", hint: str = "") -> None:
        changed = (state, detail) != (self.state, self.detail)
        if state != self.state:
            self.since = time.time()
        self.state, self.detail, self.hint = state, detail, hint
        (self._settled.clear if state == "connecting" else self._settled.set)()
        if changed and state in ("ready", "needs_login", "failed"):
            self._on_change()

    async def _reconnect(self) -> None:
        """Open the session again whenever it ends, after a pause that grows while opening fails."""
        attempt = 0
        while True:
            opened_at = time.monotonic()
            task = self._current = self._open_one()
            try:
                session = await task.ready()
            except SignInRequiredError as error:
                self._set_state("needs_login", error.message, error.hint)
                await task.ended.wait()
                if self._signed_in is not None:
                    await self._signed_in()
                    attempt = 0
                    continue
            except ServerUnavailableError as error:
                self._set_state("failed", error.message, error.hint)
            else:
                self.protocol = session.protocol.version
                self._set_state("ready")
                await session.closed.wait()
                if time.monotonic() - opened_at > self._pause_s(attempt):
                    attempt = 0
                # After one quick end, calls wait for the restart. A server that ends again is reported as down.
                self._set_state("connecting" if attempt == 0 else "failed", f"{session.reason}; it is restarted")
            await task.ended.wait()
            if self._errors.exit_status and task.opened:
                self.detail = f"it ended ({self._errors.exit_status}); it is restarted"
            # Jitter over half the pause: servers that ended together are not restarted together.
            await asyncio.sleep(self._pause_s(attempt) * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
            attempt += 1

    async def _reopen_signed_in(self, task: SessionTask) -> None:
        while self._signed_in is not None and not task.over:
            if await self._signed_in():
                (await task.ready()).lose("somebody has signed in")

    def _pause_s(self, attempt: int) -> float:
        return float(min(self._settings.backoff_first_s * 2 ** min(attempt, 30), self._settings.backoff_most_s))

    async def _check(self, task: SessionTask) -> None:
        """Send a ping and abandon a session that does not answer it. `_reconnect` then opens a new one."""
        session = await task.ready()
        try:
            async with asyncio.timeout(min(_PING_S, call_timeout_s(self._config, self._settings))):
                await session.ping()
            self._on_alive()
        except TimeoutError:
            session.lose("it does not answer")
        except NotSentError:
            return
        except MCPError as error:
            if error.code in (UNREACHABLE, NEEDS_LOGIN):
                session.lose(error.message)
        finally:
            self._checking = False

    async def _check_regularly(self) -> None:
        while True:
            await asyncio.sleep(HEALTH_CHECK_S)
            self.check()
