"""Tokens of removed accounts are revoked in the background, a few at a time, so that nothing waits for an issuer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_AT_ONCE = 8
_CLOSE_S = 5.0


class Revocations:
    """The revocations that are under way. One that fails is not repeated: the tokens end by themselves."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, revoke: Callable[[], Awaitable[object]]) -> None:
        """Begin a revocation, and return at once."""
        task = asyncio.create_task(self._revoke(revoke))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Wait until those that have begun have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Give them some time to end, then cancel them."""
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _revoke(self, revoke: Callable[[], Awaitable[object]]) -> None:
        async with self._slots:
            await revoke()
