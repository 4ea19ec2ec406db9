"""The way to the database: a pool of connections, one tenant for each transaction, and an end to every wait.

A database that is gone fails at once. One that hangs does not: whoever waits longer than a moment gives up when the
database gives no sign of life either, to this connection or to the watch that looks after it twice a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, conninfo
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from toolscout.errors import SettingError, StoreError
from toolscout.storage.postgres.schema import ROLE

_Result = TypeVar("_Result")
_Values = Sequence[Any] | Mapping[str, Any] | None
PATIENCE_S = 1.2
"""How long a silent database is waited for."""

_LOOK_S = 0.25
_AS = (
    "SELECT set_config('role', %s, true), set_config('search_path', %s, true), set_config('toolscout.tenant', %s, true)"
)
_DEFAULTS = {
    "application_name": "toolscout",
    "connect_timeout": "2",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "2",
}
_POOL = logging.getLogger("psycopg.pool")
_NO_WAY = (psycopg.OperationalError, psycopg.InterfaceError, OSError, TimeoutError)
_LEFT = ("08", "57P")
"""How the codes begin with which a database says that it is going; with any other it has answered."""


class ConnectionPool:
    """Runs work in transactions; what fails on the way is a StoreError that names the database, never a secret."""

    def __init__(self, url: str, connections: int) -> None:
        """Read the address; nothing is connected yet."""
        try:
            given = conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise SettingError(
                "the address of the store cannot be read",
                hint="use postgresql://USER:PASSWORD@HOST:PORT/DATABASE, special characters percent-encoded",
            ) from error
        self.conninfo = conninfo.make_conninfo("", **{**_DEFAULTS, **given})
        self.where = f"postgresql://{given.get('host', '')}:{given.get('port', 5432)}/{given.get('dbname', '')}"
        self.vector_schema = "public"
        self._pool: AsyncConnectionPool[AsyncConnection] | None = None
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._seen = 0.0
        self._connections = connections

    def saw_life(self) -> None:
        """Note that the database has just answered."""
        self._seen = asyncio.get_running_loop().time()

    def lost(self) -> None:
        """Note that there is no connection to the database any more."""
        self._seen = 0.0

    @property
    def alive(self) -> bool:
        """Whether the database has answered within the last second."""
        return asyncio.get_running_loop().time() - self._seen < 1.0

    async def open(self, vector_schema: str) -> None:
        """Open the pool; pgvector's names are found in the schema that was given."""
        self.vector_schema = vector_schema
        if _POOL.level == logging.NOTSET:  # each try to connect again would be a line; ours is one error, or `stale`
            _POOL.setLevel(logging.CRITICAL)
        self._pool = AsyncConnectionPool(
            self.conninfo,
            min_size=1,
            max_size=max(1, self._connections),
            timeout=PATIENCE_S,
            reconnect_timeout=2,
            kwargs={"autocommit": True, "prepare_threshold": None},
            open=False,
        )
        await self._pool.open(wait=False)

    async def close(self) -> None:
        """Close every connection; what hangs is left behind."""
        if self._abandoned:
            await asyncio.wait(self._abandoned, timeout=2 * PATIENCE_S)
        if self._pool:
            await self._pool.close(timeout=PATIENCE_S)
            self._pool = None

    async def connect(self) -> AsyncConnection:
        """Open a connection of its own, as the login of the address."""
        try:
            return await self.bounded(AsyncConnection.connect(self.conninfo, autocommit=True, prepare_threshold=None))
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise self.failure(error) from error

    async def run(
        self, work: Callable[[AsyncConnection], Awaitable[_Result]], *, tenant: str = "", snapshot: bool = False
    ) -> _Result:
        """Do work in one transaction that sees one tenant; a `snapshot` sees one state of the database throughout."""
        if self._pool is None:
            raise StoreError(f"{self.where} is not open", hint="use `async with Scout.open(...)`")
        held: list[AsyncConnection] = []
        try:
            result = await self.bounded(self._transact(self._pool, work, tenant, snapshot, held), held)
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise self.failure(error) from error
        except UnicodeEncodeError as error:
            raise StoreError(
                f"{self.where}: a name holds what PostgreSQL cannot store", hint="use names of valid Unicode text"
            ) from error
        self.saw_life()
        return result

    async def bounded(self, work: Coroutine[Any, Any, _Result], held: list[AsyncConnection] | None = None) -> _Result:
        """Wait for work while the database lives; give up on both when it is silent for too long.

        A look that comes late says that this process was busy, not that the database was silent all the while.
        """
        clock = asyncio.get_running_loop().time
        task = asyncio.create_task(work)
        silent, looked = 0.0, clock()
        try:
            while silent < PATIENCE_S and not (await asyncio.wait({task}, timeout=_LOOK_S))[0]:
                passed, heard = clock() - looked, self._seen > looked
                silent = 0.0 if heard else silent + (passed if passed < 2 * _LOOK_S else 0.0)
                looked += passed
        except asyncio.CancelledError:
            self._abandon(task, held)
            raise
        if task.done():
            return task.result()
        self._abandon(task, held)
        raise TimeoutError(f"no answer within {PATIENCE_S} s")

    def failure(self, error: BaseException) -> StoreError:
        """Say what happened, in words for whoever runs the gateway."""
        text = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, PoolTimeout):
            text = "no connection in time"
            if self.alive:
                return StoreError(
                    f"{self.where} is busy: {text}",
                    hint="try again; if it goes on, raise TOOLSCOUT_STORE_CONNECTIONS, or PostgreSQL's max_connections",
                )
        code = getattr(error, "sqlstate", None)
        if isinstance(error, _NO_WAY) and (code is None or code.startswith(_LEFT)):
            return StoreError(
                f"{self.where} cannot be reached: {text}",
                hint="check that PostgreSQL runs and that the address is right; what is loaded is served meanwhile",
            )
        return StoreError(
            f"{self.where}: {text}", hint="look into the log of PostgreSQL, and at the rights of its role"
        )

    async def _transact(
        self,
        pool: AsyncConnectionPool[AsyncConnection],
        work: Callable[[AsyncConnection], Awaitable[_Result]],
        tenant: str,
        snapshot: bool,
        held: list[AsyncConnection],
    ) -> _Result:
        for attempt in range(self._connections + 1):
            async with pool.connection() as db:
                held[:] = [db]
                begun = False
                try:
                    async with db.transaction():
                        if snapshot:
                            await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                        await db.execute(_AS, (ROLE, f'toolscout, "{self.vector_schema}"', tenant))
                        begun = True
                        return await work(db)
                except psycopg.OperationalError:
                    if begun or attempt == self._connections or not db.closed:
                        raise
                    # The pool could not know that this connection has died; nothing was done on it.
                finally:
                    held.clear()
        raise TimeoutError

    def _abandon(self, task: asyncio.Task[Any], held: list[AsyncConnection] | None) -> None:
        """Leave a task behind: the driver asks the server to end it, and is cut off when that does not answer."""
        leaving = asyncio.create_task(_leave(task, held or []))
        self._abandoned.add(leaving)
        leaving.add_done_callback(self._abandoned.discard)


async def fetch_all(db: AsyncConnection, query: str, values: _Values = None) -> list[Any]:
    """Run a query and return all its rows."""
    return await (await db.execute(query, values, binary=True)).fetchall()


async def fetch_one(db: AsyncConnection, query: str, values: _Values = None) -> tuple[Any, ...]:
    """Run a query that always has exactly one row and return this row."""
    row = await (await db.execute(query, values, binary=True)).fetchone()
    if row is None:
        raise StoreError("the database has lost a row that is always there", hint="run `toolscout doctor`")
    return row


async def _leave(task: asyncio.Task[Any], held: list[AsyncConnection]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=PATIENCE_S)
    for db in held:
        db.pgconn.finish()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
