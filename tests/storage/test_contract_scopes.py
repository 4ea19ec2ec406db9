"""Every store: what one user adds, changes, switches or removes belongs to that user alone."""

from __future__ import annotations

import pytest

from catalogues import OpenStore, keys, look_for, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout.errors import InvalidValueError, ToolNotFoundError
from toolscout.models import Caller, Scope
from toolscout.ports import Store
from toolscout.settings import Settings

pytestmark = guarantee("store:contract", "tenant:isolation")

ANN, BOB = Caller(user="ann"), Caller(user="bob")
ANNS, BOBS = ANN.scope, BOB.scope
PAINT = {"name": "paint", "server": "studio", "description": "Paint a wall"}
FORGE = {"name": "forge", "server": "studio", "description": "Forge a gate"}


async def test_publishing_for_one_user_leaves_everyones_and_others_tools(store: Store) -> None:
    await publish(store, [PAINT, FORGE])
    await publish(store, [], own={"ann": [{**PAINT, "description": "Paint a portrait"}]})
    await publish(store, [], own={"bob": [{**FORGE, "description": "Forge a key"}]})
    assert await keys(store) == ["studio__forge", "studio__paint"]
    await publish(store, [FORGE])
    assert await keys(store, ANN) == ["studio__forge", "studio__paint"]
    assert await keys(store, BOB) == ["studio__forge"]
    assert (await store.tools(BOB, ["studio__forge"]))["studio__forge"].description == "Forge a key"


async def test_stamps_and_servers_are_those_of_the_scope(store: Store) -> None:
    await publish(store, [PAINT], own={"ann": [{**PAINT, "server": "loft"}]})
    assert [server.key for server in await store.servers(Scope())] == ["studio"]
    assert [server.key for server in await store.servers(ANNS)] == ["loft"]
    assert list(await store.stamps(ANNS, "loft")) == ["loft__paint"]
    assert await store.stamps(Scope(), "loft") == {}
    assert await store.servers(BOBS) == []


async def test_a_server_that_a_user_removes_is_removed_for_that_user(store: Store) -> None:
    await publish(store, [PAINT], own={"ann": [PAINT, FORGE], "bob": [FORGE]})
    assert await store.remove_server(ANNS, "studio") == 2
    assert await keys(store, ANN) == ["studio__paint"]
    assert await keys(store, BOB) == ["studio__forge", "studio__paint"]
    assert await store.remove_server(ANNS, "studio") == 0


async def test_removing_a_user_removes_all_that_the_user_added_and_nothing_else(store: Store) -> None:
    await publish(store, [PAINT], own={"ann": [FORGE, {**PAINT, "server": "loft"}], "bob": [FORGE]})
    assert await store.remove_user("local", "ann") == 2
    assert await keys(store, ANN) == ["studio__paint"]
    assert await store.servers(ANNS) == []
    assert await keys(store, BOB) == ["studio__forge", "studio__paint"]
    assert await store.remove_user("elsewhere", "bob") == 0


async def test_an_empty_name_is_refused_and_does_not_mean_everyone(store: Store) -> None:
    await publish(store, [PAINT], own={"ann": [FORGE]})
    for tenant, user in (("local", ""), ("", "ann"), ("", "")):
        with pytest.raises(InvalidValueError, match="empty"):
            await store.remove_user(tenant, user)
    assert await keys(store, ANN) == ["studio__forge", "studio__paint"]


async def test_a_switch_affects_the_tool_of_its_scope_only(store: Store) -> None:
    await publish(store, [PAINT], own={"ann": [PAINT]})
    await store.set_enabled(ANNS, ["studio__paint"], False)
    assert await keys(store) == ["studio__paint"]
    assert [tool.owner for tool in (await store.tools(ANN, ["studio__paint"])).values()] == [None]
    with pytest.raises(ToolNotFoundError):
        await store.set_enabled(BOBS, ["studio__paint"], False)


async def test_two_segments_are_searched_as_one_catalogue(new_store: OpenStore) -> None:
    one, two = await new_store(), await new_store()
    rows = many(60)
    await publish(one, [], own={"ann": rows}, embedder=HashEmbedder())
    await publish(two, rows[::2], own={"ann": rows[1::2]}, embedder=HashEmbedder())
    for text in ("create invoice", "delete the photo", "export a calendar or a song"):
        whole, split = await look_for(one, text, 60, caller=ANN), await look_for(two, text, 60, caller=ANN)
        assert [item.key for item in whole.facets] == [item.key for item in split.facets]
        assert whole.cosine.tolist() == split.cosine.tolist()
        assert whole.impact.tolist() == split.impact.tolist()
        assert whole.frequency.tolist() == split.frequency.tolist()
        assert whole.visible == split.visible == 60
    key = "many__create_invoice_00000"
    assert [(item.key, cosine) for item, cosine in await one.similar(ANN, key, 9)] == [
        (item.key, cosine) for item, cosine in await two.similar(ANN, key, 9)
    ]
    assert await one.vocabulary(ANN) == await two.vocabulary(ANN)


async def test_scopes_that_were_evicted_from_memory_are_loaded_again_on_demand(new_store: OpenStore) -> None:
    store = await new_store(loaded_tools=10)
    for tenant in ("red", "blue", "green"):
        await publish(store, many(8, server=tenant), tenant=tenant, own={"ann": [PAINT]}, embedder=HashEmbedder())
    for tenant in ("red", "blue", "green", "red"):
        visible_keys = await keys(store, Caller(tenant=tenant, user="ann"))
        assert len(visible_keys) == 9
        assert all(key.startswith((tenant, "studio")) for key in visible_keys)


async def test_a_change_of_the_model_is_seen_in_every_scope(new_store: OpenStore) -> None:
    from toolscout import Scout

    store = await new_store()
    first = Scout(store=store, embedder=HashEmbedder("hash-1"), settings=Settings(embedder="none"))
    await first.index_tools(many(4))
    await first.index_tools([PAINT], caller=ANN)
    await first.index_tools([PAINT], caller=Caller(tenant="red"))
    second = Scout(store=store, embedder=HashEmbedder("hash-2", dimension=32), settings=Settings(embedder="none"))
    await second.refresh()
    for caller in (ANN, Caller(tenant="red")):
        assert (await store.overview(caller)).model_id == "hash-2"
        answer = await second.search_tools("paint", caller=caller, ranker="semantic")
        assert (answer[0].tool.key, answer.metadata.degraded) == ("studio__paint", None)
