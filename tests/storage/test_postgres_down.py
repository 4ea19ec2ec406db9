"""The database stops, dies or freezes: loaded tools are served and marked stale, the rest fails with a typed error.

When the database is back, everything works again without a restart, and nothing that was acknowledged is lost.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from catalogues import keys, look_for, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from postgres_server import PostgresServer, with_database
from toolscout import StoreError
from toolscout.errors import to_wire
from toolscout.models import Caller, Scope
from toolscout.policy.rules import Rules
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.postgres.store import PostgresStore
from waiting import eventually

pytestmark = guarantee("store:down")

ERROR_S, RECOVERY_S = 2.0, 5.0
OTHER = Caller(tenant="other")


def stop(server: PostgresServer) -> None:
    server.stop()


def kill(server: PostgresServer) -> None:
    server.stop(signal.SIGKILL)


def freeze(server: PostgresServer) -> None:
    server.freeze()


def bring_back(server: PostgresServer) -> None:
    if server.process:
        server.thaw()
    else:
        server.start()


@asynccontextmanager
async def open_database(server: PostgresServer, name: str, **settings: Any) -> AsyncIterator[PostgresStore]:
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {name}")
    store = open_store(Settings(store=with_database(server.url, name), **settings), Rules())
    assert isinstance(store, PostgresStore)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def fails_soon(work: Awaitable[Any]) -> StoreError:
    """Check that work fails in time with the typed error."""
    started = time.monotonic()
    with pytest.raises(StoreError) as caught:
        await work
    assert time.monotonic() - started < ERROR_S
    return caught.value


@pytest.mark.parametrize("away", [stop, kill, freeze])
async def test_loaded_tools_are_served_stale_and_the_rest_fails_soon(
    fragile: PostgresServer, away: Callable[[PostgresServer], None]
) -> None:
    async with open_database(fragile, "down") as store:
        await publish(store, many(30), embedder=HashEmbedder())
        await publish(store, many(5), tenant="other", embedder=HashEmbedder())
        store.segments.drop(Scope(tenant="other"))
        assert not (await store.overview(Caller())).stale
        await asyncio.to_thread(away, fragile)

        async def stale() -> bool:
            return (await store.overview(Caller())).stale

        await eventually(stale, RECOVERY_S)
        assert len(await keys(store)) == 30
        assert (await look_for(store, "create invoice")).cosine.max() > 0.5
        assert list(await store.tools(Caller(), ["many__create_invoice_00000"])) == ["many__create_invoice_00000"]
        errors = await asyncio.gather(
            fails_soon(store.ping()),
            fails_soon(store.overview(OTHER)),
            fails_soon(publish(store, many(31))),
            fails_soon(store.set_enabled(Scope(), ["many__create_invoice_00000"], False)),
            fails_soon(store.lease("index:mail", "me", 5)),
        )
        assert {error.code for error in errors} == {"store_unavailable"}
        assert all("cannot be reached" in error.message and error.hint for error in errors)
        told = json.dumps([to_wire(error) for error in errors])
        assert str(fragile.port) not in told, "callers are not told where the database is"
        assert "the catalogue cannot be reached" in told

        await asyncio.to_thread(bring_back, fragile)

        async def whole() -> bool:
            try:
                await store.ping()
                return not (await store.overview(Caller())).stale and len(await keys(store, OTHER)) == 5
            except StoreError:
                return False

        await eventually(whole, RECOVERY_S)
        await publish(store, many(31), embedder=HashEmbedder())
        assert len(await keys(store)) == 31


async def test_a_new_user_without_own_tools_is_answered_even_in_an_outage(
    fragile: PostgresServer,
) -> None:
    async with open_database(fragile, "first_seen") as store:
        await publish(store, many(5), own={"ann": many(2, server="hers")}, embedder=HashEmbedder())
        await asyncio.to_thread(stop, fragile)
        assert len(await keys(store, Caller(user="zoe"))) == 5
        await fails_soon(keys(store, Caller(user="ann")))
        assert Scope(owner="zoe") not in store.segments


async def test_many_requests_to_a_frozen_database_all_fail_in_time(fragile: PostgresServer) -> None:
    async with open_database(fragile, "frozen", store_connections=2) as store:
        await store.ping()
        fragile.freeze()
        await asyncio.gather(*(fails_soon(store.scopes()) for _ in range(20)))
        fragile.thaw()

        async def answers() -> bool:
            try:
                await store.scopes()
            except StoreError:
                return False
            return True

        await eventually(answers, RECOVERY_S)


async def test_a_tenant_that_is_searched_in_the_database_fails_soon_and_comes_back(fragile: PostgresServer) -> None:
    async with open_database(fragile, "large", resident_tools=0) as store:
        await publish(store, many(30), embedder=HashEmbedder())
        assert len(await keys(store)) == 30
        await asyncio.to_thread(kill, fragile)
        await fails_soon(look_for(store, "create invoice"))
        await fails_soon(store.overview(Caller()))
        await asyncio.to_thread(bring_back, fragile)

        async def answers() -> bool:
            try:
                return bool((await look_for(store, "create invoice")).facets)
            except StoreError:
                return False

        await eventually(answers, RECOVERY_S)


async def test_nothing_that_was_acknowledged_is_lost(fragile: PostgresServer) -> None:
    """A writer keeps publishing while the server is killed and started again, three times."""
    async with open_database(fragile, "writing") as store:
        acknowledged = 0
        done = False

        async def write() -> None:
            nonlocal acknowledged
            while not done:
                try:
                    await publish(store, many(acknowledged + 1))
                    acknowledged += 1
                except StoreError:
                    await asyncio.sleep(0.01)

        writer = asyncio.create_task(write())
        for turn in range(1, 4):

            async def ahead(least: int = turn * 3) -> bool:
                return acknowledged >= least

            await eventually(ahead, 60)
            before = acknowledged
            await asyncio.to_thread(kill, fragile)
            await asyncio.to_thread(bring_back, fragile)
            with psycopg.connect(with_database(fragile.url, "writing")) as db:
                (count,) = db.execute("SELECT count(*) FROM toolscout.tools").fetchone() or (0,)
            assert count >= before
        done = True
        await writer

        async def is_current() -> bool:  # a publication that was committed but not read back is marked as stale
            return not (await store.overview(Caller())).stale

        await eventually(is_current, RECOVERY_S)
        assert len(await keys(store)) in (acknowledged, acknowledged + 1)


async def test_opening_a_missing_database_is_a_typed_error(fragile: PostgresServer) -> None:
    store = open_store(Settings(store=with_database(fragile.url, "never_made")), Rules())
    error = await fails_soon(store.open())
    await store.close()
    assert "never_made" in error.message
    fragile.freeze()
    store = open_store(Settings(store=fragile.url), Rules())
    await fails_soon(store.open())
    await store.close()


async def test_an_error_never_contains_the_password(fragile: PostgresServer) -> None:
    url = fragile.url.replace("postgres@", "postgres:hunter2secret@").replace(str(fragile.port), "1")
    store = open_store(Settings(store=url), Rules())
    error = await fails_soon(store.open())
    await store.close()
    assert "hunter2secret" not in f"{error.message} {error.hint} {error!r}"
