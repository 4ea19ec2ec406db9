"""What leads to indexing again: changes that servers report, lists that run out, edits of config files."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

_log = logging.getLogger("toolscout")

_POLL_S = 1.0

Stamp = tuple[int, int, int] | None


class Coalesced:
    """Something to do, at most once per interval and never twice at once, however often it is asked for."""

    def __init__(self, act: Callable[[], Awaitable[None]], interval_s: float) -> None:
        """Do `act` when asked; it costs one task in all."""
        self._act = act
        self._interval_s = interval_s
        self._asked = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def ask(self) -> None:
        """Ask for it; asking a thousand times a second is as good as once."""
        self._asked.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def ask_in(self, seconds: float) -> None:
        """Ask for it later; a second time replaces the first."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(seconds, self._interval_s), self.ask)

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
            await self._asked.wait()
            self._asked.clear()
            try:
                await self._act()
            except Exception:  # noqa: BLE001 - what follows a change must not end the watching
                _log.exception("a change could not be followed")
            await asyncio.sleep(self._interval_s)
