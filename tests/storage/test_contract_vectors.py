"""Every store: vectors are stored by model and text, in half precision, and two models are never mixed."""

from __future__ import annotations

import numpy as np
import pytest

from catalogues import keys, look_for, many, publish
from embedders import HashEmbedder, hash_vector
from guarantees import guarantee
from toolscout.errors import DimensionError
from toolscout.models import Caller, Filter, Intent, Scope
from toolscout.ports import Store

pytestmark = guarantee("store:contract")

ONE, TWO = "11" * 16, "22" * 16


async def test_only_texts_without_a_vector_of_the_model_are_missing(store: Store) -> None:
    assert await store.missing_vectors("hash-1", [ONE, TWO]) == {ONE, TWO}
    await store.add_vectors("hash-1", [ONE], np.ones((1, 4), dtype=np.float32))
    assert await store.missing_vectors("hash-1", [ONE, TWO]) == {TWO}
    assert await store.missing_vectors("hash-2", [ONE, TWO]) == {ONE, TWO}
    assert await store.missing_vectors("hash-1", []) == set()


async def test_thousands_of_texts_can_be_checked_at_once(store: Store) -> None:
    hashes = [f"{number:032x}" for number in range(3_000)]
    await store.add_vectors("hash-1", hashes[:2_000], np.ones((2_000, 4), dtype=np.float32))
    assert await store.missing_vectors("hash-1", hashes) == set(hashes[2_000:])


async def test_a_stored_vector_is_not_replaced(store: Store) -> None:
    embedder = HashEmbedder()
    await publish(store, many(3), embedder=embedder)
    before = (await look_for(store, "create invoice")).cosine
    entry_hashes = [f"{number:032x}" for number in range(3)]
    await store.add_vectors("hash-1", entry_hashes, np.ones((3, 64), dtype=np.float32))
    assert np.array_equal((await look_for(store, "create invoice")).cosine, before)


async def test_one_text_of_many_tenants_is_embedded_once(store: Store) -> None:
    embedder = HashEmbedder()
    for tenant in ("red", "green", "blue"):
        await publish(store, many(5), tenant=tenant, embedder=embedder)
    assert len(embedder.documents) == 5
    candidates = await look_for(store, "create invoice", caller=Caller(tenant="blue"))
    assert candidates.cosine.max() > 0.5


async def test_a_vector_outlives_its_tool_so_that_its_return_embeds_nothing(store: Store) -> None:
    embedder = HashEmbedder()
    await publish(store, many(5), embedder=embedder)
    await store.remove_server(Scope(), "many")
    await publish(store, many(5), embedder=embedder)
    assert len(embedder.documents) == 5


async def test_vectors_are_stored_in_half_precision(store: Store) -> None:
    await publish(store, many(1), embedder=HashEmbedder())
    name = many(1)[0]
    text = f"create invoice 00000 (many), also payments, create: {name['description']}"
    exact, cosine = hash_vector(text), (await look_for(store, text)).cosine[0, 0]
    assert cosine == pytest.approx(float(exact @ exact.astype(np.float16).astype(np.float32)), abs=1e-6)
    assert cosine == pytest.approx(1.0, abs=1e-3)


async def test_vectors_of_another_length_are_refused_and_change_nothing(store: Store) -> None:
    await publish(store, many(4), embedder=HashEmbedder(dimension=64))
    with pytest.raises(DimensionError, match="64 numbers for hash-1, the new ones have 32") as caught:
        await publish(store, many(9), embedder=HashEmbedder(dimension=32))
    assert "another id" in caught.value.hint
    assert len(await keys(store)) == 4
    assert (await look_for(store, "create invoice")).cosine.max() > 0.5


async def test_a_query_vector_of_another_length_is_a_loud_error(store: Store) -> None:
    await publish(store, many(4), embedder=HashEmbedder())
    intent = Intent(text="create", terms=("creat",), vector=np.ones(32, dtype=np.float32))
    with pytest.raises(DimensionError, match="64 numbers, the query has 32"):
        await store.candidates(Caller(), Filter(), [intent], 10, "hash-1")


async def test_a_query_vector_of_another_model_is_not_compared(store: Store) -> None:
    await publish(store, many(40), embedder=HashEmbedder())
    mixed = await look_for(store, "create invoice", model_id="hash-2")
    by_words = await look_for(store, "create invoice", model_id="")
    assert not mixed.cosine.any()
    assert [item.key for item in mixed.facets] == [item.key for item in by_words.facets]


async def test_the_published_model_alone_decides_which_vectors_are_served(store: Store) -> None:
    await publish(store, many(4), embedder=HashEmbedder("hash-1"))
    await publish(store, many(4, tags=["new"]), embedder=HashEmbedder("hash-2", dimension=32))
    assert (await store.overview(Caller())).model_id == "hash-2"
    with pytest.raises(DimensionError):
        await look_for(store, "create invoice", model_id="hash-2")
    assert not (await look_for(store, "create invoice", model_id="hash-1")).cosine.any()


async def test_tools_without_a_vector_are_named_for_every_tenant(store: Store) -> None:
    await publish(store, many(2), tenant="red", embedder=HashEmbedder())
    await publish(store, many(3, server="late"), tenant="blue", model_id="hash-1")
    unembedded = await store.unembedded("hash-1")
    assert sorted((tool.tenant, tool.server) for tool in unembedded) == [("blue", "late")] * 3
    assert len(await store.unembedded("hash-2")) == 5


async def test_a_tool_without_a_vector_is_still_found_by_words(store: Store) -> None:
    await publish(store, many(30), embedder=HashEmbedder())
    await publish(store, [{"name": "weld", "server": "late", "description": "Weld steel"}], model_id="hash-1")
    candidates = await look_for(store, "weld steel", limit=3)
    at = [item.key for item in candidates.facets].index("late__weld")
    assert candidates.cosine[0, at] == 0
    assert candidates.impact[:, at].all()


async def test_the_nearest_tools_come_best_first_and_never_the_tool_itself(store: Store) -> None:
    await publish(store, many(60), embedder=HashEmbedder())
    near = await store.similar(Caller(), "many__create_invoice_00000", 5)
    cosines = [cosine for _, cosine in near]
    assert len(near) == 5
    assert cosines == sorted(cosines, reverse=True)
    assert "many__create_invoice_00000" not in [item.key for item, _ in near]
    assert near[0][0].name.startswith("create_")


async def test_nothing_is_near_a_tool_without_a_vector_or_one_that_does_not_exist(store: Store) -> None:
    await publish(store, many(5), model_id="hash-1")
    assert await store.similar(Caller(), "many__create_invoice_00000", 5) == []
    assert await store.similar(Caller(), "many__nothing", 5) == []
