"""Every store: the same tools and the same query give the same candidates, in whatever order tools were added."""

from __future__ import annotations

import random

import numpy as np
import pytest

from catalogues import OpenStore, look_for, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout.models import Caller, Candidates, Filter, Intent
from toolscout.ports import Store

pytestmark = guarantee("store:contract", "rank:deterministic")

QUERIES = ("create invoice", "export every photo of a recipe", "song", "nothing of the kind")
COLUMNS = ("cosine", "impact", "fields", "frequency")


def same(one: Candidates, other: Candidates) -> bool:
    """Compare bit by bit: nearly equal scores may still fall in another order."""
    equal = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)
    return equal and (one.facets, one.terms, one.visible) == (other.facets, other.terms, other.visible)


async def test_the_same_query_gives_the_same_candidates_twice(store: Store) -> None:
    await publish(store, many(300), embedder=HashEmbedder())
    for query in QUERIES:
        assert same(await look_for(store, query), await look_for(store, query))


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_order_and_the_parts_of_publishing_do_not_matter(new_store: OpenStore, seed: int) -> None:
    rows = [*many(150, server="a"), *many(150, server="b")]
    shuffled = random.Random(seed).sample(rows, len(rows))
    at_once, in_parts = await new_store(), await new_store()
    await publish(at_once, rows, embedder=HashEmbedder())
    await publish(in_parts, [row for row in shuffled if row["server"] == "b"], embedder=HashEmbedder())
    await publish(in_parts, [row for row in shuffled if row["server"] == "a"], embedder=HashEmbedder())
    for query in QUERIES:
        assert same(await look_for(at_once, query), await look_for(in_parts, query))


@pytest.mark.parametrize("copies", [11, 30, 101, 203])
async def test_equal_tools_have_equal_scores_and_the_first_keys_win(store: Store, copies: int) -> None:
    """The last bits of a matrix product depend on the place of a row, so equal vectors could get unequal scores."""
    alike = [{"name": f"ping{'_' * number}host", "description": "Ping a host"} for number in range(1, copies + 1)]
    await publish(store, [*alike, *many(57)], embedder=HashEmbedder())
    candidates = await look_for(store, "ping a host", limit=10)
    assert [item.key for item in candidates.facets] == sorted(f"local__{row['name']}" for row in alike)[:10]
    assert len(set(candidates.cosine[0].tolist())) == 1
    assert candidates.cosine[0, 0] > 0.9


async def test_several_intents_are_answered_in_one_pass_with_a_row_each(store: Store) -> None:
    embedder = HashEmbedder()
    await publish(store, many(200), embedder=embedder)
    texts = ("create invoice", "delete song")
    vectors = await embedder.embed_queries(texts)
    intents = [
        Intent(text=text, terms=terms, vector=vector)
        for text, terms, vector in zip(texts, (("creat", "invoic"), ("delet", "song")), vectors, strict=True)
    ]
    both = await store.candidates(Caller(), Filter(), intents, 10, "hash-1")
    assert both.cosine.shape == (2, len(both.facets))
    assert both.impact.shape == both.fields.shape == (4, len(both.facets))
    for line, intent in enumerate(intents):
        alone = await store.candidates(Caller(), Filter(), [intent], 10, "hash-1")
        at = [both.facets.index(item) for item in alone.facets]
        assert np.array_equal(both.cosine[line, at], alone.cosine[0])


async def test_without_an_intent_there_are_no_candidates(store: Store) -> None:
    await publish(store, many(5), embedder=HashEmbedder())
    candidates = await store.candidates(Caller(), Filter(), [], 10, "hash-1")
    assert candidates.facets == ()
