"""Leases of servers: held by one process and one task at a time, waited for, and released whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from downstreams import until
from embedders import GatedEmbedder, HashEmbedder
from guarantees import guarantee
from toolscout import Caller, Scout, Settings, StoreError
from toolscout.models import Scope
from toolscout.policy.rules import Rules
from toolscout.ports import Store
from toolscout.scout.leases import Leases
from toolscout.storage import open_store

pytestmark = guarantee("replica:turns")

HERE, ACME = Scope(), Scope(tenant="acme")
QUICK = Settings(store="memory:", lease_s=0.1)


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    leases_store = open_store(QUICK, Rules())
    await leases_store.open()
    yield leases_store
    await leases_store.close()


async def test_a_free_lease_is_held_and_released(store: Store) -> None:
    async with Leases(store, QUICK).hold(HERE, ["a", "b"]) as leases:
        assert set(leases.until) == {"a", "b"}
        assert not await store.lease("index:local/:a", "another process", 60)
    assert await store.lease("index:local/:a", "another process", 60)


async def test_try_hold_returns_the_free_ones_at_once(store: Store) -> None:
    await store.lease("index:local/:a", "another process", 60)
    async with Leases(store, QUICK).try_hold(HERE, ["a", "b"]) as leases:
        assert set(leases.until) == {"b"}


async def test_hold_waits_for_another_process_and_then_gives_up(store: Store) -> None:
    await store.lease("index:local/:a", "another process", 60)
    with pytest.raises(StoreError, match="another process is indexing a; nothing was changed"):
        async with Leases(store, QUICK).hold(HERE, ["a", "b"]):
            pytest.fail("the lease of a is not free")
    assert await store.lease("index:local/:b", "another process", 60), "what was free is free again"


async def test_hold_takes_over_from_a_process_that_died(store: Store) -> None:
    await store.lease("index:local/:a", "it was killed", 0.1)
    async with Leases(store, QUICK).hold(HERE, ["a"]) as leases:
        assert set(leases.until) == {"a"}


async def test_within_a_process_a_lease_is_a_lock(store: Store) -> None:
    leases = Leases(store, QUICK)
    log: list[str] = []

    async def work(name: str) -> None:
        async with leases.hold(HERE, ["a"]):
            log.append(f"{name} in")
            await asyncio.sleep(0)
            async with leases.try_hold(HERE, ["a"]) as second:
                assert not second.until
            log.append(f"{name} out")

    await asyncio.gather(*(work(name) for name in "xyz"))
    assert log == ["x in", "x out", "y in", "y out", "z in", "z out"]


async def test_scopes_and_servers_do_not_wait_for_one_another(store: Store) -> None:
    leases = Leases(store, QUICK)
    async with leases.hold(HERE, ["a"]), leases.hold(ACME, ["a"]), leases.hold(HERE, ["b"]):
        pass


async def test_a_failure_or_a_cancellation_releases_the_lease(store: Store) -> None:
    leases = Leases(store, QUICK)
    with suppress(ValueError):
        async with leases.hold(HERE, ["a"]):
            raise ValueError
    entered = asyncio.Event()

    async def hang() -> None:
        async with leases.hold(HERE, ["a"]):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await entered.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await store.lease("index:local/:a", "another process", 60)


async def test_the_library_waits_for_its_own_indexing_of_the_same_server() -> None:
    embedder = GatedEmbedder()
    async with Scout.open(settings=QUICK, embedder=embedder) as scout:
        first = asyncio.create_task(scout.index_tools([{"name": "one", "description": "One."}]))
        await until(lambda: bool(embedder.documents))
        second = asyncio.create_task(scout.index_tools([{"name": "two", "description": "Two."}]))
        elsewhere = await scout.index_tools([], caller=Caller(user="ann"))
        assert elsewhere.new == 0
        embedder.gate.set()
        assert ((await first).new, (await second).new, (await second).removed) == (1, 1, 1)
        assert [match.tool.name for match in await scout.list_tools()] == ["two"]


async def test_indexing_and_removing_wait_for_another_process() -> None:
    store = open_store(QUICK, Rules())
    async with Scout(store=store, embedder=HashEmbedder(), settings=QUICK) as scout:
        await scout.index_tools([{"name": "one", "server": "shop"}])
        await store.lease("index:local/:shop", "another process", 60)
        for change in (scout.index_tools([{"name": "two", "server": "shop"}]), scout.remove_server("shop")):
            with pytest.raises(StoreError, match="another process is indexing shop"):
                await change
        assert [match.tool.name for match in await scout.list_tools()] == ["one"]
        await scout.set_enabled("shop__one", enabled=False)
        assert len(await scout.list_tools()) == 0


async def test_a_lease_that_was_taken_while_the_clock_was_ahead_is_void(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    real = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + 3_600)
        assert await store.lease("index:local/:a", "another process", 10)
    assert await store.lease("index:local/:a", "this process", 10)
    assert not await store.lease("index:local/:a", "another process", 10)
