"""A debouncer: many triggers in a short time lead to one run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

_log = logging.getLogger("toolscout")


class Debouncer:
    """Something to do, at most once per interval and never twice at once, however often it is asked for."""

    def __init__(self, act: Callable[[], Awaitable[None]], interval_s: float) -> None:
        """Do `act` when asked; it costs one task in all."""
        self._act = act
        self._interval_s = interval_s
        self._triggered = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def trigger(self) -> None:
        """Ask for it; asking a thousand times a second is as good as once."""
        self._triggered.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def trigger_in(self, seconds: float) -> None:
        """Ask for it later; a second time replaces the first."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(seconds, self._interval_s), self.trigger)

    async def close(self) -> None:
        """Do nothing more."""
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
                await self._act()
            except Exception:  # noqa: BLE001 - what follows a change must not end the watching
                _log.exception("a change could not be followed")
            await asyncio.sleep(self._interval_s)
