"""Whose work runs next. Every owner gets a turn, and work that others wait for can be cut short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count

Owner = tuple[str, ...]
"""Whom work is for, the widest part first: a tenant and then its caller, for instance."""


class Turn:
    """One piece of work that waits for its place, or has it."""

    def __init__(self, owner: Owner, number: int, timeout_s: float, slice_s: float | None) -> None:
        self.owner = owner
        self.number = number
        self.begins: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.limit_s = timeout_s
        self.slice_s = slice_s
        self._timeout: asyncio.Timeout | None = None
        self._started = 0.0

    def timeout(self) -> asyncio.Timeout:
        """Return the time limit of the work, which begins now."""
        self._started = asyncio.get_running_loop().time()
        self._timeout = asyncio.timeout(self.limit_s)
        return self._timeout

    def cut_short(self) -> None:
        """Leave the work only its slice, if it has one."""
        if self.slice_s is None or self.slice_s >= self.limit_s:
            return
        self.limit_s = self.slice_s
        if self._timeout is not None:
            with suppress(RuntimeError):  # the work has ended meanwhile
                now = asyncio.get_running_loop().time()
                self._timeout.reschedule(max(now, self._started + self.limit_s))


class Turns:
    """A few places for work. An owner has one place at a time.

    The owner that was served longest ago comes next, and of one owner the newest work: what waits for long waits
    behind work that is slow. Work without a slice never takes the last place.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._numbers = count()
        self._waiting: list[Turn] = []
        self._running: dict[Owner, Turn] = {}
        self._served: dict[Owner, int] = {}

    @asynccontextmanager
    async def take(self, owner: Owner, timeout_s: float, slice_s: float | None) -> AsyncIterator[Turn]:
        """Wait for a place and hold it. Work with a slice is cut short to it as soon as other work waits for it."""
        turn = Turn(owner, next(self._numbers), timeout_s, slice_s)
        self._waiting.append(turn)
        try:
            self._give_places()
            await turn.begins
            yield turn
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                del self._running[owner]
            self._give_places()

    def _give_places(self) -> None:
        while turn := min(filter(self._can_start, self._waiting), key=self._rank, default=None):
            self._waiting.remove(turn)
            self._running[turn.owner] = turn
            number = next(self._numbers)
            self._served.update((part, number) for part in _parts(turn.owner))
            if not turn.begins.done():  # it may be cancelled, and gives its place back then
                turn.begins.set_result(None)
        for waiting in self._waiting:
            self._cut_blocker_short(waiting)
        if not self._running:
            self._served.clear()

    def _can_start(self, turn: Turn) -> bool:
        uncut = sum(running.slice_s is None for running in self._running.values())
        return (
            turn.owner not in self._running
            and len(self._running) < self._places
            and (turn.slice_s is not None or uncut < self._places - 1)
        )

    def _cut_blocker_short(self, waiting: Turn) -> None:
        """Cut the work short that waiting work needs the place of: its owner's own, else what has run longest."""
        blocker = self._running.get(waiting.owner)
        if blocker is None and len(self._running) == self._places:
            blocker = next((turn for turn in self._running.values() if turn.slice_s is not None), None)
        if blocker is not None:
            blocker.cut_short()

    def _rank(self, turn: Turn) -> tuple[tuple[int, ...], int]:
        return tuple(self._served.get(part, -1) for part in _parts(turn.owner)), -turn.number


def _parts(owner: Owner) -> list[Owner]:
    return [owner[: end + 1] for end in range(len(owner))]
