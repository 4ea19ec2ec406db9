"""Every store deletes the vectors and pins of tools that are long gone, and nothing that may still be needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import psycopg
import pytest

from catalogues import OpenStore, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout.models import Pin, Record, Retention, Scope, Verdict
from toolscout.ports import Store
from waiting import eventually

pytestmark = guarantee("store:clean-up")

NOW = Retention(vectors_s=0, pins_s=0)
RED, ANN = Scope(tenant="red"), Scope(tenant="red", owner="ann")
TOOLS = [row["name"] for row in many(3)]


def pin(name: str, verdict: Verdict = "seen", scope: Scope = RED) -> Record:
    before = {"meta": {"verdict": "seen", "said": 'NUL \x00 and \ud800, "verdict": "seen"'}}
    body = asdict(Pin(key=name, fingerprint="f" * 64, verdict=verdict, before=before))
    return Record(kind="pin", scope=scope, name=name, body=body)


async def pinned(store: Store) -> list[str]:
    return sorted(record.name for record in await store.records("pin"))


async def test_vectors_of_texts_that_no_tool_has_are_deleted(store: Store) -> None:
    embedder = HashEmbedder()
    await publish(store, many(8), embedder=embedder)
    await publish(store, many(5), embedder=embedder)
    await store.clean_up(Retention())
    await publish(store, many(8), embedder=embedder)
    assert len(embedder.documents) == 8, "what was gone for a moment is still there"
    await publish(store, many(5), embedder=embedder)
    await store.clean_up(NOW)
    await publish(store, many(8), embedder=embedder)
    assert len(embedder.documents) == 11


async def test_the_pin_of_a_tool_that_is_gone_stays_for_its_time_and_then_goes(store: Store) -> None:
    await publish(store, many(3), tenant="red")
    keys = [f"many__{name}" for name in TOOLS]
    await publish(store, many(1), tenant="red")
    for _ in range(2):
        await store.clean_up(Retention())
        assert await pinned(store) == sorted(keys)
    await store.clean_up(NOW)
    assert await pinned(store) == keys[:1]


async def test_pins_of_a_removed_server_go_too(store: Store) -> None:
    await publish(store, many(3), tenant="red", own={"ann": many(2, server="hers")})
    await store.remove_server(ANN, "hers")
    await store.clean_up(NOW)
    assert await pinned(store) == sorted(f"many__{name}" for name in TOOLS)


@guarantee("catalog:pin")
async def test_a_tool_that_came_back_counts_from_when_it_goes_again(store: Store) -> None:
    first, second, third = many(3)
    for rows in ([first, second, third], [first, third], [first], [first, second], [first]):
        await publish(store, rows, tenant="red")
        if second not in rows:  # an hour may pass before the next one, so none sees that it is back
            await store.clean_up(Retention())
    # Of the two that are gone, the one that was gone first is kept: the third, since the second was back meanwhile.
    await store.clean_up(Retention(pins_most=1, settled_s=0))
    assert await pinned(store) == sorted(f"many__{row['name']}" for row in (first, third))


@guarantee("catalog:pin")
async def test_what_an_operator_decided_is_kept(store: Store) -> None:
    await store.put_records([pin("a__approved", "approved"), pin("a__kept_out", "kept_out"), pin("a__seen")])
    await store.clean_up(NOW)
    assert await pinned(store) == ["a__approved", "a__kept_out"]


async def test_two_clean_ups_at_once_delete_what_one_alone_deletes(store: Store) -> None:
    for _ in range(30):
        await store.put_records([pin("a__seen")])
        await asyncio.gather(store.clean_up(NOW), store.clean_up(Retention()))
        assert await pinned(store) == []


@guarantee("catalog:pin")
async def test_a_flood_of_tools_that_come_and_go_drives_out_no_older_pin(store: Store) -> None:
    await store.put_records([pin("a__z_first"), pin("b__other")])
    await store.clean_up(Retention())
    flood = [pin(f"a__flood_{number:02}") for number in range(20)]
    await store.put_records(flood)
    few = Retention(pins_most=5)
    await store.clean_up(few)
    assert len(await pinned(store)) == 22, "they may belong to tools that are just being published"
    await store.clean_up(Retention(pins_most=5, settled_s=0))
    kept = await pinned(store)
    assert kept == [*(f"a__flood_{number:02}" for number in range(4)), "a__z_first", "b__other"]


@pytest.mark.parametrize("engine", ["memory", "sqlite"], indirect=True)
async def test_sqlite_cleans_up_by_itself_when_something_is_published(new_store: OpenStore) -> None:
    store = await new_store(pins_kept_days=0.0)
    await store.put_records([pin("a__seen")])
    await publish(store, many(1))
    assert await pinned(store) == [f"many__{TOOLS[0]}"]


async def test_postgresql_cleans_up_by_itself_when_a_replica_opens(url: str, new_replica: Callable[..., Any]) -> None:
    store = await new_replica()
    await publish(store, many(1))
    await store.put_records([pin("a__seen")])
    with psycopg.connect(url) as db:
        db.execute("DELETE FROM toolscout.leases")  # an hour has passed
    await new_replica(pins_kept_days=0.0)

    async def cleaned() -> bool:
        return await pinned(store) == [f"many__{TOOLS[0]}"]

    await eventually(cleaned, 10)
