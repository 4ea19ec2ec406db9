"""A database that is busy, locked or being cleaned up does not count as down, and cancelled work ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from catalogues import keys, many, publish
from guarantees import guarantee
from postgres_server import Databases
from toolscout import StoreError
from toolscout.models import Caller
from toolscout.policy.rules import Rules
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.postgres.pool import PATIENCE_S
from toolscout.storage.postgres.store import PostgresStore
from waiting import eventually

pytestmark = guarantee("store:down")

WAIT_S = 10.0
LOCK = "SELECT pg_advisory_xact_lock(42)"
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND NOT granted"


def postgres_store(url: str, **settings: Any) -> PostgresStore:
    store = open_store(Settings(store=url, **settings), Rules())
    assert isinstance(store, PostgresStore)
    return store


@asynccontextmanager
async def open_postgres(url: str, **settings: Any) -> AsyncIterator[PostgresStore]:
    store = postgres_store(url, **settings)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def hold_lock(url: str, lock: str = LOCK) -> AsyncIterator[None]:
    """Hold a lock until the end of the block. What holds it now goes on meanwhile, in the same event loop."""
    async with await AsyncConnection.connect(url) as db:
        await db.execute(lock)
        yield


async def wait_for_lock(db: AsyncConnection) -> None:
    """Wait for the lock that the test holds."""
    await db.execute(LOCK)


async def waiting(url: str, count: int) -> None:
    """Wait until so many sessions wait for the lock."""
    async with await AsyncConnection.connect(url, autocommit=True) as db:

        async def so_many() -> bool:
            return await (await db.execute(WAITING)).fetchone() == (count,)

        await eventually(so_many, WAIT_S)


async def patience_is_over(store: PostgresStore) -> None:
    """Wait for longer than a silent database would be waited for."""
    over = asyncio.get_running_loop().time() + 1.5 * PATIENCE_S

    async def lives() -> bool:
        return store.pool.last_answer > over

    await eventually(lives, WAIT_S)


async def test_a_ping_needs_no_connection_and_other_work_fails_as_busy_when_all_are_in_use(
    database: Callable[[], str],
) -> None:
    url = database()
    async with open_postgres(url, store_connections=1) as store:
        async with hold_lock(url):
            slow = asyncio.create_task(store.pool.run(wait_for_lock))
            await waiting(url, 1)
            await store.ping()
            with pytest.raises(StoreError, match="is busy") as caught:
                await store.scopes()
            assert "TOOLSCOUT_STORE_CONNECTIONS" in caught.value.hint
        await slow
        await store.scopes()


@pytest.mark.parametrize("limit", ["lock_timeout", "statement_timeout"])
async def test_a_database_that_answers_with_an_error_is_not_one_that_cannot_be_reached(
    database: Callable[[], str], limit: str
) -> None:
    url = database()

    async def impatient(db: AsyncConnection) -> None:
        await db.execute(f"SET LOCAL {limit} = '50ms'")
        await db.execute(LOCK)

    async def end_session(db: AsyncConnection) -> None:
        await db.execute("RESET ROLE; SELECT pg_terminate_backend(pg_backend_pid())")

    async with open_postgres(url) as store:
        async with hold_lock(url):
            with pytest.raises(StoreError, match=f"{limit.split('_')[0]} timeout") as caught:
                await store.pool.run(impatient)
        assert "cannot be reached" not in caught.value.message
        assert "log of PostgreSQL" in caught.value.hint
        with pytest.raises(StoreError, match="cannot be reached"):
            await store.pool.run(end_session)


async def test_a_replica_that_starts_while_another_migrates_waits_for_it(postgres: Databases) -> None:
    url = postgres.empty()
    store = postgres_store(url)
    async with hold_lock(url, "SELECT pg_advisory_xact_lock(hashtextextended('toolscout:migrate', 0))"):
        opening = asyncio.create_task(store.open())
        await patience_is_over(store)
        assert not opening.done()
    await opening
    await store.close()


async def test_while_a_migration_locks_the_tables_answers_are_stale_and_the_database_alive(
    database: Callable[[], str],
) -> None:
    url = database()
    async with open_postgres(url) as store:
        await publish(store, many(5))
        async with hold_lock(url, "LOCK TABLE toolscout.scopes"):
            await patience_is_over(store)
            await store.ping()
            overview = await store.overview(Caller())
            assert (overview.total, overview.stale) == (5, True)

        async def fresh() -> bool:
            return not (await store.overview(Caller())).stale

        await eventually(fresh, WAIT_S)


async def test_a_long_clean_up_runs_on_one_replica_and_marks_nothing_stale(database: Callable[[], str]) -> None:
    url = database()
    slowly = f"CREATE OR REPLACE FUNCTION toolscout.forget_vectors(older_than interval) RETURNS bigint AS '{LOCK}; "
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(slowly + "SELECT 1::bigint' LANGUAGE sql SECURITY DEFINER")
    async with hold_lock(url), open_postgres(url) as one, open_postgres(url) as two:
        await waiting(url, 1)
        for store in (one, two):
            await patience_is_over(store)
            assert not (await store.overview(Caller())).stale
        await waiting(url, 1)


async def test_work_that_is_cancelled_ends_in_the_server_and_leaves_its_connection_to_others(
    database: Callable[[], str],
) -> None:
    url = database()
    async with open_postgres(url, store_connections=1) as store:

        async def who(db: AsyncConnection) -> Any:
            return await (await db.execute("SELECT pg_backend_pid()")).fetchone()

        before = await store.pool.run(who)
        async with hold_lock(url):
            slow = asyncio.create_task(store.pool.run(wait_for_lock))
            await waiting(url, 1)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            await waiting(url, 0)
            assert await store.pool.run(who) == before


async def test_a_cancellation_does_not_disturb_other_work(database: Callable[[], str]) -> None:
    async with open_postgres(database(), store_connections=1) as store:
        for turns in range(60):
            cancelled, other = asyncio.create_task(store.scopes()), asyncio.create_task(store.scopes())
            for _ in range(turns):
                await asyncio.sleep(0)
            cancelled.cancel()
            await other
            await asyncio.gather(cancelled, return_exceptions=True)
        assert await keys(store) == []
