"""Watching the database: what other replicas publish, and whether it lives, on a connection of its own.

A notification says that there is something new; asking twice a second finds what a lost notification would have said,
and is the sign of life that everything else goes by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import psycopg
from psycopg import AsyncConnection, errors

from toolscout.errors import ToolscoutError
from toolscout.models import Scope
from toolscout.storage.postgres.pool import ConnectionPool
from toolscout.storage.postgres.reads import generations
from toolscout.storage.postgres.writes import CHANNEL

Changes = dict[Scope, tuple[int, str, bool]]
"""For scopes: generation, model, and whether the tenant is searched in the database."""

_ASK_S = 0.5
_AGAIN_S = 0.25
_OVERLAP = 1_000
"""Numbers are given a moment before they are committed: so many are read again, in case one came late."""

_EVERYTHING_S = 60.0
_LOCKED_MS = 500


class ChangeListener:
    """Follows the database in the background; `apply` is told what changed, `lost` that there is no connection."""

    def __init__(
        self, pool: ConnectionPool, apply: Callable[[Changes], Awaitable[None]], lost: Callable[[], None]
    ) -> None:
        """Remember whom to tell."""
        self._pool = pool
        self._apply = apply
        self._lost = lost
        self._task: asyncio.Task[None] | None = None
        self._newest = 0
        self._waiting: Changes = {}
        self._applying: asyncio.Task[None] | None = None

    @property
    def since(self) -> int:
        """Return the number from which on something may have changed that was not told yet."""
        return max(0, self._newest - _OVERLAP)

    def start(self) -> None:
        """Begin to follow."""
        self._task = asyncio.create_task(self._follow(), name="toolscout-watch")

    async def stop(self) -> None:
        """Stop."""
        for task in (self._task, self._applying):
            if task:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self._task = self._applying = None

    async def _follow(self) -> None:
        while True:
            held: list[AsyncConnection] = []
            try:
                held.append(await self._pool.connect())
                await self._listen(held)
            except (ToolscoutError, psycopg.Error, OSError, TimeoutError):
                self._pool.lost()
                self._lost()
            finally:
                for db in held:
                    db.pgconn.finish()
            await asyncio.sleep(_AGAIN_S)

    async def _listen(self, held: list[AsyncConnection]) -> None:
        (db,) = held
        loop = asyncio.get_running_loop()
        await self._pool.bounded(_do(db, f"SET lock_timeout = '{_LOCKED_MS}'; LISTEN {CHANNEL}"), held)
        self._newest = 0
        everything = loop.time()
        while True:
            now = loop.time()
            if now >= everything:
                self._newest, everything = 0, now + _EVERYTHING_S
            try:
                changes = await self._pool.bounded(generations(db, self.since), held)
            except (errors.InvalidSchemaName, errors.LockNotAvailable):  # someone migrates: it lives, but tells nothing
                self._pool.saw_life()
                self._lost()
                await asyncio.sleep(_AGAIN_S)
                continue
            self._pool.saw_life()
            self._newest = max((item[0] for item in changes.values()), default=self._newest)
            self._hand_over(changes)
            async for _ in db.notifies(timeout=_ASK_S, stop_after=1):
                pass

    def _hand_over(self, changes: Changes) -> None:
        """Let changes be applied in the background: loading may take longer than the database may seem silent."""
        self._waiting |= changes
        if self._applying is None or self._applying.done():
            self._applying = asyncio.create_task(self._hand_on())

    async def _hand_on(self) -> None:
        changes, self._waiting = self._waiting, {}
        try:
            await self._apply(changes)
        except ToolscoutError:
            self._lost()


async def _do(db: AsyncConnection, query: str) -> None:
    await db.execute(query)
