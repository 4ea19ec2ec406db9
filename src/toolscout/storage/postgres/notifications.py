"""The listener: learns on its own connection what other replicas publish, and whether the database is alive.

A notification says that there is something new. The listener also asks twice a second, in case a notification was
lost. The answers are the sign of life that the connection pool relies on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import psycopg
from psycopg import AsyncConnection, errors

from toolscout.errors import ToolscoutError
from toolscout.storage.postgres.pool import ConnectionPool
from toolscout.storage.postgres.reads import Generations, generations
from toolscout.storage.postgres.writes import CHANNEL

POLL_S = 0.5
_RETRY_S = 0.25
_OVERLAP = 1_000
"""Generations are numbered a moment before they are committed: so many are read again, in case one was late."""

_FULL_READ_S = 60.0
_LOCK_TIMEOUT_MS = 500


class ChangeListener:
    """Listens in the background. It calls `apply` with new generations, and `on_loss` when the connection is lost."""

    def __init__(
        self, pool: ConnectionPool, apply: Callable[[Generations], Awaitable[None]], on_loss: Callable[[], None]
    ) -> None:
        self._pool = pool
        self._apply = apply
        self._on_loss = on_loss
        self._task: asyncio.Task[None] | None = None
        self._newest = 0
        self._pending: Generations = {}
        self._applying: asyncio.Task[None] | None = None

    @property
    def since(self) -> int:
        """The generation from which on there may be news."""
        return max(0, self._newest - _OVERLAP)

    def start(self) -> None:
        """Start listening."""
        self._task = asyncio.create_task(self._run(), name="toolscout-listener")

    async def stop(self) -> None:
        """Stop listening."""
        for task in (self._task, self._applying):
            if task:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self._task = self._applying = None

    async def _run(self) -> None:
        while True:
            db: AsyncConnection | None = None
            try:
                db = await self._pool.connect()
                await self._listen(db)
            except (ToolscoutError, psycopg.Error, OSError, TimeoutError):
                self._pool.note_loss()
                self._on_loss()
            finally:
                if db is not None:
                    db.pgconn.finish()
            await asyncio.sleep(_RETRY_S)

    async def _listen(self, db: AsyncConnection) -> None:
        loop = asyncio.get_running_loop()
        await self._pool.bounded(_execute(db, f"SET lock_timeout = '{_LOCK_TIMEOUT_MS}'; LISTEN {CHANNEL}"), [db])
        self._newest = 0
        full_read_at = loop.time()
        while True:
            now = loop.time()
            if now >= full_read_at:
                self._newest, full_read_at = 0, now + _FULL_READ_S
            try:
                news = await self._pool.bounded(generations(db, self.since), [db])
            except (errors.InvalidSchemaName, errors.LockNotAvailable):  # a migration is running
                self._pool.note_answer()
                self._on_loss()
                await asyncio.sleep(_RETRY_S)
                continue
            self._pool.note_answer()
            self._newest = max((item.generation for item in news.values()), default=self._newest)
            self._schedule(news)
            async for _ in db.notifies(timeout=POLL_S, stop_after=1):
                pass

    def _schedule(self, news: Generations) -> None:
        """Apply new generations in the background: loading may take longer than the database may be silent."""
        self._pending |= news
        if self._applying is None or self._applying.done():
            self._applying = asyncio.create_task(self._apply_pending())

    async def _apply_pending(self) -> None:
        news, self._pending = self._pending, {}
        try:
            await self._apply(news)
        except ToolscoutError:
            self._on_loss()


async def _execute(db: AsyncConnection, query: str) -> None:
    await db.execute(query)
