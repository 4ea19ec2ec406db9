"""The connection pool: transactions that see one tenant each, and a time limit on every wait.

A database that is down fails at once. One that hangs does not, so a wait ends when the database has been silent for
`PATIENCE_S`: it has answered neither this connection nor the listener that asks it twice a second.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, conninfo
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from toolscout.errors import SettingError, StoreError, StoreUnreachableError
from toolscout.storage.postgres.schema import ROLE

_Result = TypeVar("_Result")
_Values = Sequence[Any] | Mapping[str, Any] | None
PATIENCE_S = 1.2
"""How long to wait for a database that gives no sign of life."""

_CHECK_S = 0.25
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
_pool_log = logging.getLogger("psycopg.pool")
_CONNECTION_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError, OSError, TimeoutError)
_SERVER = re.compile("connection to server (?:at|on) .*? failed: ")
"""The server that the driver's messages name. Ours name it in front, where callers are not told it."""

_DISCONNECTED = ("08", "57P")
"""The classes of SQLSTATE codes for a lost connection or a shutdown. With any other code the database has answered."""


class ConnectionPool:
    """Runs work in transactions. Every failure is a StoreError that names the database, never a secret."""

    def __init__(self, url: str, connections: int) -> None:
        try:
            parameters = conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise SettingError(
                "the address of the store cannot be read",
                hint="use postgresql://USER:PASSWORD@HOST:PORT/DATABASE, special characters percent-encoded",
            ) from error
        self.conninfo = conninfo.make_conninfo("", **{**_DEFAULTS, **parameters})
        self.where = (
            f"postgresql://{parameters.get('host', '')}:{parameters.get('port', 5432)}/{parameters.get('dbname', '')}"
        )
        self.vector_schema = "public"
        self._pool: AsyncConnectionPool[AsyncConnection] | None = None
        self._cancelling: set[asyncio.Task[Any]] = set()
        self.last_answer = 0.0
        self._connections = connections

    def note_answer(self) -> None:
        """Note that the database has just answered."""
        self.last_answer = asyncio.get_running_loop().time()

    def note_loss(self) -> None:
        """Note that the connection to the database was lost."""
        self.last_answer = 0.0

    @property
    def alive(self) -> bool:
        """Whether the database has answered within the last second."""
        return asyncio.get_running_loop().time() - self.last_answer < 1.0

    async def open(self, vector_schema: str) -> None:
        """Open the pool. `vector_schema` is the schema that pgvector is installed in."""
        self.vector_schema = vector_schema
        if _pool_log.level == logging.NOTSET:  # it would log every attempt to reconnect
            _pool_log.setLevel(logging.CRITICAL)
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
        """Close every connection, without waiting long for one that hangs."""
        if self._cancelling:
            await asyncio.wait(self._cancelling, timeout=2 * PATIENCE_S)
        if self._pool:
            await self._pool.close(timeout=PATIENCE_S)
            self._pool = None

    async def connect(self) -> AsyncConnection:
        """Open a connection outside the pool, with the login of the address."""
        try:
            return await self.bounded(AsyncConnection.connect(self.conninfo, autocommit=True, prepare_threshold=None))
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise self.failure(error) from error

    async def run(
        self, work: Callable[[AsyncConnection], Awaitable[_Result]], *, tenant: str = "", snapshot: bool = False
    ) -> _Result:
        """Run work in one transaction that sees one tenant. With `snapshot` it reads one state of the database."""
        if self._pool is None:
            raise StoreError.not_open(self.where)
        connections: list[AsyncConnection] = []
        try:
            transaction = self._transact(self._pool, work, tenant, snapshot, connections)
            result = await self.bounded(transaction, connections)
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise self.failure(error) from error
        except UnicodeEncodeError as error:
            raise StoreError(
                f"{self.where}: a name has characters that PostgreSQL cannot store",
                hint="use names of valid Unicode text",
                where=self.where,
            ) from error
        self.note_answer()
        return result

    async def bounded(self, work: Coroutine[Any, Any, _Result], connections: Sequence[AsyncConnection] = ()) -> _Result:
        """Wait for work as long as the database gives signs of life. Cancel it after `PATIENCE_S` of silence.

        A check that comes late means that this process was busy, so the time before it does not count as silence.
        """
        clock = asyncio.get_running_loop().time
        task = asyncio.create_task(work)
        silence_s, checked_at = 0.0, clock()
        try:
            while silence_s < PATIENCE_S and not (await asyncio.wait({task}, timeout=_CHECK_S))[0]:
                elapsed_s, answered = clock() - checked_at, self.last_answer > checked_at
                silence_s = 0.0 if answered else silence_s + (elapsed_s if elapsed_s < 2 * _CHECK_S else 0.0)
                checked_at += elapsed_s
        except asyncio.CancelledError:
            self._cancel(task, connections)
            raise
        if task.done():
            return task.result()
        self._cancel(task, connections)
        raise TimeoutError(f"no answer within {PATIENCE_S} s")

    def failure(self, error: BaseException) -> StoreError:
        """Turn an error into a StoreError with a hint for the operator."""
        text = _SERVER.sub("", " ".join(str(error).split())) or type(error).__name__
        if isinstance(error, PoolTimeout):
            text = "no connection in time"
            if self.alive:
                return StoreUnreachableError(
                    f"{self.where} is busy: {text}",
                    hint="try again; if it lasts, raise TOOLSCOUT_STORE_CONNECTIONS, or PostgreSQL's max_connections",
                    where=self.where,
                )
        code = getattr(error, "sqlstate", None)
        if isinstance(error, _CONNECTION_ERRORS) and (code is None or code.startswith(_DISCONNECTED)):
            return StoreUnreachableError(
                f"{self.where} cannot be reached: {text}",
                hint="check that PostgreSQL runs and that the address is right; what is loaded is served meanwhile",
                where=self.where,
            )
        hint = "check the log of PostgreSQL and the rights of its role"
        return StoreError(f"{self.where}: {text}", hint=hint, where=self.where)

    async def _transact(
        self,
        pool: AsyncConnectionPool[AsyncConnection],
        work: Callable[[AsyncConnection], Awaitable[_Result]],
        tenant: str,
        snapshot: bool,
        connections: list[AsyncConnection],
    ) -> _Result:
        for attempt in range(self._connections + 1):
            async with pool.connection() as db:
                connections[:] = [db]
                started = False
                try:
                    async with db.transaction():
                        if snapshot:
                            await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                        await db.execute(_AS, (ROLE, f'toolscout, "{self.vector_schema}"', tenant))
                        started = True
                        return await work(db)
                except psycopg.OperationalError:
                    if started or attempt == self._connections or not db.closed:
                        raise
                    # The connection had died in the pool. Nothing was done on it, so another one is tried.
                finally:
                    connections.clear()
        raise TimeoutError

    def _cancel(self, task: asyncio.Task[Any], connections: Sequence[AsyncConnection]) -> None:
        """Cancel a task in the background."""
        cancelling = asyncio.create_task(_cancel(task, connections))
        self._cancelling.add(cancelling)
        cancelling.add_done_callback(self._cancelling.discard)


async def fetch_all(db: AsyncConnection, query: str, values: _Values = None) -> list[Any]:
    """Run a query and return all its rows."""
    return await (await db.execute(query, values, binary=True)).fetchall()


async def fetch_one(db: AsyncConnection, query: str, values: _Values = None) -> tuple[Any, ...]:
    """Run a query that always has exactly one row and return this row."""
    row = await (await db.execute(query, values, binary=True)).fetchone()
    if row is None:
        raise StoreError("the database has lost a row that is always there", hint="run `toolscout doctor`")
    return row


async def _cancel(task: asyncio.Task[Any], connections: Sequence[AsyncConnection]) -> None:
    """Let the driver ask the server to end the query. Close the connections when the server does not answer."""
    task.cancel()
    await asyncio.wait({task}, timeout=PATIENCE_S)
    for db in connections:
        db.pgconn.finish()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
