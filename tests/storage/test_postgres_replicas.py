"""Several replicas on one database: all serve what one publishes, even if a notification is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from catalogues import keys, look_for, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Scout, Settings
from toolscout.models import Caller, Scope
from toolscout.storage.postgres import notifications, reads, writes
from toolscout.storage.postgres.reads import ScopeGeneration
from toolscout.storage.postgres.store import PostgresStore
from waiting import eventually

pytestmark = guarantee("store:contract")

FRESH_S = 10.0
"""How long a test waits at most. The actual delay is measured in benchmarks/scale."""


async def sees(store: PostgresStore, count: int, caller: Caller | None = None) -> None:
    """Wait until a replica shows so many tools."""

    async def there() -> bool:
        return len(await keys(store, caller)) == count

    await eventually(there, FRESH_S)


@pytest.mark.parametrize("resident_tools", [50_000, 0], ids=["postgres", "postgres-large"])
async def test_a_publication_of_one_replica_is_served_by_the_other(
    new_replica: Callable[..., Any], resident_tools: int
) -> None:
    one, two = await new_replica(resident_tools=resident_tools), await new_replica(resident_tools=resident_tools)
    assert await keys(two) == await keys(two, Caller(user="ann")) == []
    await publish(one, many(5), own={"ann": many(2, server="hers")}, embedder=HashEmbedder())
    await sees(two, 5)
    await sees(two, 7, Caller(user="ann"))
    assert (await look_for(two, "create invoice")).cosine.max() > 0.5
    await two.set_enabled(Scope(), ["many__create_invoice_00000"], False)
    await sees(one, 4)
    await one.remove_user("local", "ann")
    await sees(two, 4, Caller(user="ann"))


async def test_a_publication_without_a_notification_is_found_by_polling(
    new_replica: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await new_replica(), await new_replica()
    monkeypatch.setattr(writes, "CHANNEL", "nobody_listens")
    await publish(one, many(5), embedder=HashEmbedder())
    await sees(two, 5)


async def test_a_notification_is_enough_without_polling(
    new_replica: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "POLL_S", 2 * FRESH_S)
    one, two = await new_replica(), await new_replica()
    await publish(one, many(5), embedder=HashEmbedder())
    await sees(two, 5)


async def test_a_replica_whose_listener_loses_its_connection_connects_again(
    new_replica: Callable[..., Any], postgres: Any
) -> None:
    one, two = await new_replica(), await new_replica()
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'toolscout' AND pid <> pg_backend_pid()"
        )
    await publish(one, many(6), embedder=HashEmbedder())
    await sees(two, 6)

    async def fresh() -> bool:
        return not (await two.overview(Caller())).stale

    await eventually(fresh, FRESH_S)


async def test_replicas_that_publish_at_once_take_turns_and_lose_nothing(new_replica: Callable[..., Any]) -> None:
    stores = [await new_replica() for _ in range(3)]
    scouts = [Scout(store=store, embedder=HashEmbedder(), settings=Settings(embedder="none")) for store in stores]
    await asyncio.gather(
        *(
            scout.index_tools(many(4, server=f"server-{number}-{turn}"), caller=Caller(tenant=tenant))
            for turn in range(3)
            for number, scout in enumerate(scouts)
            for tenant in ("red", "blue")
        )
    )
    for store in stores:
        for tenant in ("red", "blue"):
            await sees(store, 36, Caller(tenant=tenant))


async def test_concurrent_requests_for_a_tenant_load_it_once(
    new_replica: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await new_replica(), await new_replica()
    await publish(one, many(30), tenant="red", embedder=HashEmbedder())
    loads = 0
    read_segment = reads.read_segment

    async def count_loads(db: Any, scope: Scope, *arguments: Any, **options: Any) -> Any:
        nonlocal loads
        loads += scope.tenant == "red"
        return await read_segment(db, scope, *arguments, **options)

    monkeypatch.setattr(reads, "read_segment", count_loads)
    key_lists = await asyncio.gather(*(keys(two, Caller(tenant="red")) for _ in range(50)))
    assert {len(item) for item in key_lists} == {30}
    assert loads == 1


async def test_the_model_of_one_replica_is_the_model_of_all(new_replica: Callable[..., Any]) -> None:
    one, two = await new_replica(), await new_replica(resident_tools=0)
    await publish(one, many(5), tenant="red", embedder=HashEmbedder())
    await publish(two, many(5), tenant="blue", embedder=HashEmbedder())
    scout = Scout(store=one, embedder=HashEmbedder("hash-2", dimension=32), settings=Settings())
    await scout.refresh()
    for store in (one, two):
        for tenant in ("red", "blue"):
            caller = Caller(tenant=tenant)

            async def follows(store: PostgresStore = store, caller: Caller = caller) -> bool:
                return (await store.overview(caller)).model_id == "hash-2"

            await eventually(follows, FRESH_S)
            other = Scout(store=store, embedder=HashEmbedder("hash-2", dimension=32), settings=Settings())
            answer = await other.search_tools("create invoice", ranker="semantic", caller=caller)
            assert answer.metadata.degraded is None
            assert answer[0].score is not None
            assert answer[0].score > 0.3


async def test_a_poll_without_changes_checks_each_scope_in_memory_at_most_once(
    new_replica: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user who was ever answered may have a scope in memory, so a poll must not compare each with each."""
    store = await new_replica()
    for number in range(20):
        await keys(store, Caller(tenant=f"tenant-{number}"))
    steps = 0

    def count_steps(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal steps
            steps += len(loaded())
            return method(*arguments)

        return call

    loaded = store.segments.loaded
    monkeypatch.setattr(store.segments, "loaded", count_steps(loaded))
    monkeypatch.setattr(store.segments, "of_other_models", count_steps(store.segments.of_other_models))
    await store.apply({Scope(tenant="tenant-1"): ScopeGeneration(0, "", in_database=False)})
    assert 0 < steps <= 21


async def test_outdated_changes_are_applied_in_finite_time(
    new_replica: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two polls are merged, and the older one has another model, or a scope that is gone by now."""
    store = await new_replica()
    generation = await publish(store, many(5), embedder=HashEmbedder())
    loads = 0
    read_segment = reads.read_segment

    async def count_loads(*arguments: Any, **options: Any) -> Any:
        nonlocal loads
        loads += 1
        return await read_segment(*arguments, **options)

    monkeypatch.setattr(reads, "read_segment", count_loads)
    async with asyncio.timeout(FRESH_S):
        await store.apply({Scope(): ScopeGeneration(generation, "older-model", in_database=False)})
        await store.apply({Scope(): ScopeGeneration(generation + 1, "hash-1", in_database=False)})
        assert 1 <= loads <= 4
        older = {Scope(owner="gone"): ScopeGeneration(generation - 1, "older-model", in_database=False)}
        await store.apply({**older, Scope(): ScopeGeneration(generation, "hash-1", in_database=False)})
    assert loads <= 4
    assert (await store.overview(Caller())).model_id == "hash-1"


@guarantee("replica:turns")
async def test_a_lease_counts_its_holders_so_that_a_late_one_can_be_detected(
    new_replica: Callable[..., Any],
) -> None:
    one, two = await new_replica(), await new_replica()
    fence = "SELECT holder, fence FROM toolscout.leases WHERE name = 'index:mail'"
    with psycopg.connect(one.pool.conninfo, autocommit=True) as db:
        assert await one.lease("index:mail", "first", 0.01)
        await eventually(lambda: two.lease("index:mail", "second", 60), FRESH_S)
        assert db.execute(fence).fetchall() == [("second", 2)]
        assert not await one.lease("index:mail", "first", 60)
        assert await two.lease("index:mail", "second", 60)
        assert db.execute(fence).fetchall() == [("second", 2)]
        await two.release("index:mail", "second")
        assert await one.lease("index:mail", "first", 60)
        assert db.execute(fence).fetchall() == [("first", 3)]
