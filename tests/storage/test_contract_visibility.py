"""Every store: one predicate decides what a caller sees, in every count and every answer."""

from __future__ import annotations

import numpy as np
import pytest

from catalogues import AccessFunction, OpenStore, keys, look_for, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout.errors import ToolNotFoundError
from toolscout.models import Caller, Facets, Filter, Scope
from toolscout.policy.rules import may_see
from toolscout.ports import Store

pytestmark = guarantee("store:contract")

ANN, BOB = Caller(user="ann"), Caller(user="bob")
SHARED = {"name": "paint", "server": "studio", "description": "Paint a wall", "category": "home"}
ANNS = {"name": "paint", "server": "studio", "description": "Paint a portrait", "category": "arts"}
SECRET = {"name": "forge", "server": "studio", "description": "Forge a signature", "category": "crime"}


@pytest.fixture
async def studio(store: Store) -> Store:
    await publish(store, [SHARED], own={"ann": [ANNS, SECRET]}, embedder=HashEmbedder())
    return store


@guarantee("tenant:isolation")
async def test_tenants_with_the_same_names_see_their_own_tools_only(store: Store) -> None:
    for tenant in ("red", "blue", "red"):
        rows = [{**SHARED, "description": f"The {tenant} wall"}, {"name": f"only_{tenant}", "server": "studio"}]
        await publish(store, rows, tenant=tenant, embedder=HashEmbedder())
    for tenant, other in (("red", "blue"), ("blue", "red")):
        caller = Caller(tenant=tenant)
        assert await keys(store, caller) == [f"studio__only_{tenant}", "studio__paint"]
        tools = await store.tools(caller, ["studio__paint", f"studio__only_{other}"])
        assert {key: tool.description for key, tool in tools.items()} == {"studio__paint": f"The {tenant} wall"}
        assert {item.tenant for item in (await look_for(store, "wall", caller=caller)).facets} == {tenant}
        assert {item.tenant for item, _ in await store.similar(caller, "studio__paint", 9)} == {tenant}
    assert await keys(store) == []


@guarantee("tenant:isolation")
async def test_removing_and_switching_reach_one_tenant_only(store: Store) -> None:
    for tenant in ("red", "blue"):
        await publish(store, [SHARED], tenant=tenant)
    await store.set_enabled(Scope(tenant="red"), ["studio__paint"], False)
    assert (await keys(store, Caller(tenant="red")), await keys(store, Caller(tenant="blue"))) == (
        [],
        ["studio__paint"],
    )
    assert await store.remove_server(Scope(tenant="red"), "studio") == 1
    assert await keys(store, Caller(tenant="blue")) == ["studio__paint"]


async def test_a_users_own_tool_hides_everyones_under_the_same_key(studio: Store) -> None:
    assert await keys(studio, ANN) == ["studio__forge", "studio__paint"]
    assert (await studio.tools(ANN, ["studio__paint"]))["studio__paint"].description == "Paint a portrait"
    candidates = await look_for(studio, "paint a wall", caller=ANN)
    assert [item.description for item in candidates.facets if item.name == "paint"] == ["Paint a portrait"]


async def test_everyone_else_sees_the_shared_tool_and_nothing_of_the_user(studio: Store) -> None:
    for caller in (BOB, Caller()):
        assert await keys(studio, caller) == ["studio__paint"]
        assert (await studio.tools(caller, ["studio__paint"]))["studio__paint"].description == "Paint a wall"
        assert await studio.tools(caller, ["studio__forge"]) == {}
        assert await studio.similar(caller, "studio__forge", 5) == []


async def test_the_overview_counts_only_what_the_caller_may_see(studio: Store) -> None:
    ann, bob = await studio.overview(ANN), await studio.overview(BOB)
    assert (ann.total, ann.categories) == (2, ("arts", "crime"))
    assert (bob.total, bob.categories) == (1, ("home",))
    assert ann.tokens > bob.tokens > 0


async def test_frequencies_count_only_tools_that_the_caller_may_see(studio: Store) -> None:
    ann = await look_for(studio, "forge signature", caller=ANN)
    bob = await look_for(studio, "forge signature", caller=BOB)
    assert (ann.frequency.tolist(), ann.visible) == ([1, 1], 2)
    assert (bob.frequency.tolist(), bob.visible) == ([0, 0], 1)


async def test_hidden_tools_change_nothing_of_what_a_caller_gets(new_store: OpenStore) -> None:
    alone, crowded = await new_store(), await new_store()
    for store in (alone, crowded):
        await publish(store, many(120), embedder=HashEmbedder())
    await publish(crowded, many(333, server="crowd"), tenant="other", embedder=HashEmbedder())
    for query in ("create invoice", "a song or a book", "delete"):
        expected, candidates = await look_for(alone, query), await look_for(crowded, query)
        assert candidates.facets == expected.facets
        for column in ("cosine", "impact", "fields", "frequency"):
            assert np.array_equal(getattr(candidates, column), getattr(expected, column)), column
    assert await crowded.similar(Caller(), "many__create_invoice_00000", 9) == await alone.similar(
        Caller(), "many__create_invoice_00000", 9
    )


async def test_a_tool_that_is_switched_off_is_gone_until_it_is_switched_on(store: Store) -> None:
    await publish(store, many(3), embedder=HashEmbedder())
    key = "many__create_invoice_00000"
    await store.set_enabled(Scope(), [key], False)
    assert key not in await keys(store)
    assert await store.tools(Caller(), [key]) == {}
    assert (await store.overview(Caller())).total == 2
    assert key not in [item.key for item in (await look_for(store, "create invoice")).facets]
    await store.set_enabled(Scope(), [key], True)
    assert key in await keys(store)


async def test_a_switch_survives_new_definitions_and_even_removal(store: Store) -> None:
    await publish(store, [SHARED])
    await store.set_enabled(Scope(), ["studio__paint"], False)
    await publish(store, [{**SHARED, "description": "Paint a fence"}])
    assert await keys(store) == []
    await store.remove_server(Scope(), "studio")
    await publish(store, [SHARED])
    assert await keys(store) == []


async def test_a_tool_that_an_operator_enables_is_on_whatever_its_definition_says(store: Store) -> None:
    await publish(store, [{**SHARED, "enabled": False}])
    assert await keys(store) == []
    await store.set_enabled(Scope(), ["studio__paint"], True)
    assert await keys(store) == ["studio__paint"]


async def test_a_tool_that_does_not_exist_cannot_be_switched(store: Store) -> None:
    await publish(store, [SHARED], tenant="red")
    with pytest.raises(ToolNotFoundError):
        await store.set_enabled(Scope(), ["studio__paint"], False)


async def test_many_tools_are_switched_at_once_and_all_or_none_of_them(store: Store) -> None:
    await publish(store, many(3), embedder=HashEmbedder())
    first, second, third = await keys(store)
    before = (await store.overview(Caller())).generation
    await store.set_enabled(Scope(), [first, second, first], False)
    after = (await store.overview(Caller())).generation
    assert await keys(store) == [third]
    assert [item.key for item in (await look_for(store, "create invoice")).facets] == [third]
    assert (await store.overview(Caller())).total == 1
    for unknown in ([first, "many__nothing"], ["many__nothing", second]):
        with pytest.raises(ToolNotFoundError, match="many__nothing"):
            await store.set_enabled(Scope(), unknown, True)
    assert await keys(store) == [third]
    assert (await store.overview(Caller())).generation == after > before
    await store.set_enabled(Scope(), [second, first], True)
    assert await keys(store) == [first, second, third]


@guarantee("access:fails-closed")
async def test_a_rule_that_fails_shows_nothing(new_store: OpenStore) -> None:
    def broken(caller: Caller, tool: Facets) -> bool:
        if tool.name == "forge":
            raise ZeroDivisionError("a rule with a mistake in it")
        return may_see(caller, tool)

    store = await new_store(AccessFunction(broken))
    await publish(store, [SHARED, SECRET], embedder=HashEmbedder())
    for reading in (
        store.facets(Caller(), Filter()),
        store.tools(Caller(), ["studio__forge"]),
        store.similar(Caller(), "studio__forge", 5),
        look_for(store, "forge a signature"),
    ):
        try:
            text = str(await reading)
        except ZeroDivisionError:
            continue
        assert "Forge" not in text
