"""The first session of a server, kept open: opened again when it ends, given up when it shows no sign of life."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal

from mcp.shared.exceptions import MCPError

from toolscout.config import ServerConfig
from toolscout.downstream.failures import unavailable
from toolscout.downstream.http_client import UNREACHABLE
from toolscout.downstream.in_flight import NotSentError
from toolscout.downstream.process import StderrBuffer
from toolscout.downstream.session import Session
from toolscout.downstream.sessions import SessionTask
from toolscout.errors import ServerUnavailableError
from toolscout.settings import Settings

State = Literal["connecting", "ready", "failed", "disabled"]

HEALTH_S = 30.0
"""How often a server behind a URL, which does not tell when it ends, is asked for a sign of life."""

_PULSE_S = 5.0


class ReconnectingSession:
    """How a server is, and the tasks that keep it so; `changed` is told when it came up or went down."""

    def __init__(
        self,
        config: ServerConfig,
        settings: Settings,
        open_one: Callable[[], SessionTask],
        errors: StderrBuffer,
        changed: Callable[[], None],
    ) -> None:
        """Take the way to open a session; nothing happens before `start`."""
        self._config = config
        self._settings = settings
        self._open_one = open_one
        self._errors = errors
        self._changed = changed
        self._home: SessionTask | None = None
        self._suspected = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._settled = asyncio.Event()
        if not config.enabled:
            self._settled.set()
        self.state: State = "connecting" if config.enabled else "disabled"
        self.detail = ""
        self.hint = ""
        self.since = time.time()
        self.protocol = ""

    def start(self, *others: Coroutine[Any, Any, None]) -> None:
        """Begin to connect, in the background and for as long as it takes; `others` run as long."""
        health = [self._watch_over()] if self._config.transport != "stdio" else []
        for work in (self._keep(), *health, *others):
            self._spawn(work)

    async def close(self) -> None:
        """End the session and all tasks."""
        for task in list(self._tasks):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._home is not None:
            await self._home.close()
        self._become("disabled", "it was closed")

    async def session(self) -> Session:
        """Return the session, waiting while it is being opened; a server that is down fails at once."""
        while True:
            await self._settled.wait()
            if self.state != "ready" or self._home is None:
                raise unavailable(self._config.title, self.state, self.detail)
            session = await self._home.ready()
            if not session.closed.is_set():
                return session
            await asyncio.sleep(0)  # the task that keeps it takes note of the end in its own turn

    def suspect(self) -> None:
        """Ask for a sign of life, one question at a time."""
        if not self._suspected and self._home is not None and self.state == "ready":
            self._suspected = True
            self._spawn(self._pulse(self._home))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _become(self, state: State, detail: str = "", hint: str = "") -> None:
        moved = (state, detail) != (self.state, self.detail)
        if state != self.state:
            self.since = time.time()
        self.state, self.detail, self.hint = state, detail, hint
        (self._settled.clear if state == "connecting" else self._settled.set)()
        if moved and state in ("ready", "failed"):
            self._changed()

    async def _keep(self) -> None:
        """Open the session again whenever it ends, after a pause that grows while that does not help."""
        attempt = 0
        while True:
            opened_at = time.monotonic()
            home = self._home = self._open_one()
            try:
                session = await home.ready()
            except ServerUnavailableError as error:
                self._become("failed", error.message, error.hint)
            else:
                self.protocol = session.agreed.version
                self._become("ready")
                await session.closed.wait()
                if time.monotonic() - opened_at > self._pause_s(attempt):
                    attempt = 0
                # One quick restart is nothing to report, and calls wait for it; a server that falls again is down.
                self._become("connecting" if attempt == 0 else "failed", f"{session.reason}; it is restarted")
            await home.ended.wait()
            if self._errors.ended and home.opened:
                self.detail = f"it ended ({self._errors.ended}); it is restarted"
            # Jitter over half the pause: servers that fell together do not come back together.
            await asyncio.sleep(self._pause_s(attempt) * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            attempt += 1

    def _pause_s(self, attempt: int) -> float:
        return float(min(self._settings.backoff_first_s * 2 ** min(attempt, 30), self._settings.backoff_most_s))

    async def _pulse(self, home: SessionTask) -> None:
        """Give up a session that does not answer a plain question; it is opened anew, and reported if that fails."""
        session = await home.ready()
        try:
            async with asyncio.timeout(min(_PULSE_S, self._config.timeout_s)):
                await session.pulse()
        except TimeoutError:
            session.lose("it hangs")
        except NotSentError:
            return
        except MCPError as error:
            if error.code == UNREACHABLE:
                session.lose(error.message)
        finally:
            self._suspected = False

    async def _watch_over(self) -> None:
        while True:
            await asyncio.sleep(HEALTH_S)
            self.suspect()
