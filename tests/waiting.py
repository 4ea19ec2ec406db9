"""Waiting for what another process, or a task in the background, is about to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def eventually(condition: Callable[[], Awaitable[bool]], patience_s: float) -> None:
    """Check a condition until it is true. Another process decides it, so there is no event to wait for."""
    async with asyncio.timeout(patience_s):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
