"""A debouncer: many triggers in a short time lead to one run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

_log = logging.getLogger("toolscout")


class Debouncer:
    """Runs an action at most once per interval and never twice at once, however often it is triggered."""

    def __init__(self, action: Callable[[], Awaitable[None]], interval_s: float) -> None:
        self._action = action
        self._interval_s = interval_s
        self._triggered = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def trigger(self) -> None:
        """Request a run: at once, or when the interval after the last run is over."""
        self._triggered.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def trigger_in(self, seconds: float) -> None:
        """Request a run later. A second request replaces the first."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(seconds, self._interval_s), self.trigger)

    async def close(self) -> None:
        """Stop the timer and the action."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await self._triggered.wait()
            self._triggered.clear()
            try:
                await self._action()
            except Exception:  # noqa: BLE001 - a failed run must not end later ones
                _log.exception("the change of a server could not be processed")
            await asyncio.sleep(self._interval_s)
