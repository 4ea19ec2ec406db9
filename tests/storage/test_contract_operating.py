"""Every store: pings, leases that one process at a time holds, and reading a whole catalogue for an export."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from catalogues import keys, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout.models import Caller, Publication, Scope
from toolscout.ports import Store

pytestmark = guarantee("store:contract")

ANNS = Caller(user="ann").scope
PAINT = {"name": "paint", "server": "studio", "description": "Paint a wall", "tags": ["art"]}
FORGE = {"name": "forge", "server": "studio", "description": "Forge a gate"}


async def test_a_store_that_is_open_answers_a_ping(store: Store) -> None:
    await store.ping()


async def test_one_holder_at_a_time_has_a_lease_and_may_renew_it(store: Store) -> None:
    assert await store.lease("index:mail", "one", 60)
    assert not await store.lease("index:mail", "two", 60)
    assert await store.lease("index:mail", "one", 60)
    assert await store.lease("index:maps", "two", 60)


async def test_a_released_lease_is_free_and_only_its_holder_can_release_it(store: Store) -> None:
    assert await store.lease("index:mail", "one", 60)
    await store.release("index:mail", "two")
    assert not await store.lease("index:mail", "two", 60)
    await store.release("index:mail", "one")
    assert await store.lease("index:mail", "two", 60)
    await store.release("index:never", "two")


async def test_a_lease_that_was_not_renewed_is_free_again(store: Store) -> None:
    assert await store.lease("index:mail", "dead", 0.05)
    ends = time.monotonic() + 10
    while not await store.lease("index:mail", "two", 60):
        assert time.monotonic() < ends
    assert not await store.lease("index:mail", "dead", 60)


async def test_a_lease_that_was_taken_while_the_clock_was_ahead_is_void(store: Store) -> None:
    assert await store.lease("index:mail", "clock ahead", 3_600)
    assert await store.lease("index:mail", "two", 10)
    assert not await store.lease("index:mail", "clock ahead", 10)


async def test_one_of_many_concurrent_holders_gets_the_lease(store: Store) -> None:
    results = await asyncio.gather(*(store.lease("index:mail", f"holder {number}", 60) for number in range(20)))
    assert results.count(True) == 1


async def test_taking_and_releasing_leases_changes_no_generation(store: Store) -> None:
    await publish(store, [PAINT])
    before = (await store.overview(Caller())).generation
    await store.lease("index:mail", "one", 60)
    await store.release("index:mail", "one")
    assert (await store.overview(Caller())).generation == before


async def test_scopes_are_all_scopes_that_were_published_to(store: Store) -> None:
    assert await store.scopes() == []
    await publish(store, [PAINT], own={"ann": [FORGE]})
    await publish(store, [PAINT], tenant="blue")
    assert await store.scopes() == [Scope(tenant="blue"), Scope(), ANNS]


async def test_switches_are_those_of_the_scope(store: Store) -> None:
    await publish(store, [PAINT, FORGE], own={"ann": [PAINT]})
    await store.set_enabled(Scope(), ["studio__paint"], False)
    await store.set_enabled(Scope(), ["studio__forge"], True)
    assert await store.switches(Scope()) == {"studio__paint": False, "studio__forge": True}
    assert await store.switches(ANNS) == {}


async def test_a_switch_outlives_its_tool(store: Store) -> None:
    await publish(store, [PAINT, FORGE])
    await store.set_enabled(Scope(), ["studio__paint"], False)
    await publish(store, [FORGE])
    assert await store.switches(Scope()) == {"studio__paint": False}


async def test_removing_a_user_removes_their_switches(store: Store) -> None:
    await publish(store, [PAINT], own={"ann": [PAINT]})
    await store.set_enabled(ANNS, ["studio__paint"], False)
    await store.set_enabled(Scope(), ["studio__paint"], False)
    await store.remove_user("local", "ann")
    assert await store.switches(ANNS) == {}
    assert await store.switches(Scope()) == {"studio__paint": False}


async def test_a_publication_may_set_switches_even_of_tools_that_do_not_exist(store: Store) -> None:
    await publish(store, [PAINT, FORGE], own={"ann": [PAINT]})
    switches = {"studio__paint": False, "elsewhere__weld": False}
    await store.publish(
        Publication(scope=Scope(), servers=(), entries=(), unchanged_keys=frozenset(), model_id="", switches=switches)
    )
    assert await store.switches(Scope()) == switches
    assert await store.switches(ANNS) == {}
    assert await keys(store) == ["studio__forge"]
    await publish(store, [{**PAINT, "server": "elsewhere", "name": "weld"}])
    assert await keys(store) == ["studio__forge"]


async def test_stored_tools_are_all_tools_as_they_were_published(store: Store) -> None:
    await publish(store, [PAINT, FORGE], own={"ann": [{**PAINT, "description": "Paint a portrait"}]})
    visible = await store.tools(Caller(), ["studio__forge", "studio__paint"])
    await store.set_enabled(Scope(), ["studio__paint"], False)
    stored_tools = await store.stored_tools(Scope())
    assert [tool.key for tool in stored_tools] == ["studio__forge", "studio__paint"]
    assert {tool.key: tool for tool in stored_tools} == visible
    assert [tool.description for tool in await store.stored_tools(ANNS)] == ["Paint a portrait"]
    assert await store.stored_tools(Scope(tenant="elsewhere")) == []


@pytest.mark.fuzz
async def test_vectors_come_back_as_they_were_stored_without_those_that_are_missing(store: Store) -> None:
    rows = many(1_200)
    await publish(store, rows, embedder=HashEmbedder())
    hashes = [f"{number:032x}" for number in range(1_200)]
    vectors = np.linspace(-1, 1, 1_200 * 64, dtype=np.float32).reshape(1_200, 64)
    await store.add_vectors("hash-1", hashes, vectors)
    stored_vectors = await store.vectors("hash-1", [*hashes, "ff" * 16])
    assert sorted(stored_vectors) == hashes
    assert stored_vectors[hashes[7]].dtype == np.float32
    halves = vectors.astype("<f2").astype(np.float32)
    assert all(np.array_equal(stored_vectors[item], halves[row]) for row, item in enumerate(hashes))
    assert await store.vectors("another model", hashes) == {}
    assert await store.vectors("hash-1", []) == {}
