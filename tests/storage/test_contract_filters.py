"""Every store: a filter works inside the search, so that the limit is filled with the best matching tools."""

from __future__ import annotations

from typing import Any

import pytest

from catalogues import keys, look_for, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout.ports import Store

pytestmark = guarantee("store:contract")

NEEDLES = [
    {
        "name": f"tune_{number:02}",
        "server": "Workshop",
        "description": "Tune a piano",
        "category": "music",
        "tags": ["rare", "even" if number % 2 == 0 else "odd"],
    }
    for number in range(12)
]


@pytest.fixture
async def haystack(store: Store) -> Store:
    await publish(store, [*many(400, category="office", tags=["common"]), *NEEDLES], embedder=HashEmbedder())
    return store


@pytest.mark.parametrize(
    "narrow",
    [{"tags": ("rare",)}, {"category": "music"}, {"servers": ("Workshop",)}],
    ids=["tag", "category", "server"],
)
async def test_a_selective_filter_still_fills_the_limit(haystack: Store, narrow: dict[str, Any]) -> None:
    """None of the twelve tools is among the best of all 412, so filtering after the search would find none."""
    unfiltered = await look_for(haystack, "create one invoice", limit=10)
    assert not [item for item in unfiltered.facets if item.server == "Workshop"]
    candidates = await look_for(haystack, "create one invoice", limit=10, **narrow)
    assert len(candidates.facets) == 10
    assert {item.server for item in candidates.facets} == {"Workshop"}


async def test_words_are_searched_within_the_filter_too(haystack: Store) -> None:
    candidates = await look_for(haystack, "tune piano", limit=10, model_id="", tags=("rare",))
    assert len(candidates.facets) == 10
    assert not (await look_for(haystack, "create invoice", limit=10, model_id="", tags=("rare",))).facets


async def test_any_tag_widens_and_all_tags_narrow(haystack: Store) -> None:
    assert len(await keys(haystack, tags=("even", "odd"), match="any")) == 12
    assert len(await keys(haystack, tags=("rare", "odd"), match="all")) == 6
    assert await keys(haystack, tags=("even", "odd"), match="all") == []
    assert await keys(haystack, tags=("rare", "unheard-of"), match="all") == []


async def test_tags_and_categories_do_not_mind_case_or_repetition(haystack: Store) -> None:
    assert len(await keys(haystack, tags=("RARE", "rare"), match="all")) == 12
    assert len(await keys(haystack, category="Music")) == 12


async def test_a_server_is_named_by_key_or_by_the_operators_spelling(store: Store) -> None:
    await publish(store, [{"name": "a", "server": "My Shop"}, {"name": "b", "server": "other"}])
    assert await keys(store, servers=("My Shop",)) == ["My-Shop__a"]
    assert await keys(store, servers=("My-Shop",)) == ["My-Shop__a"]
    assert await keys(store, servers=("My-Shop", "other")) == ["My-Shop__a", "other__b"]


async def test_conditions_add_up(haystack: Store) -> None:
    assert len(await keys(haystack, servers=("Workshop",), category="music", tags=("odd",))) == 6
    assert await keys(haystack, servers=("many",), category="music") == []


@pytest.mark.parametrize("narrow", [{"tags": ("nope",)}, {"category": "nope"}, {"servers": ("nope",)}])
async def test_a_filter_that_nothing_passes_leaves_nothing(haystack: Store, narrow: dict[str, Any]) -> None:
    assert await keys(haystack, **narrow) == []
    candidates = await look_for(haystack, "tune piano", **narrow)
    assert candidates.facets == ()
    assert candidates.cosine.shape == (1, 0)


async def test_frequencies_count_all_visible_tools_whatever_the_filter(haystack: Store) -> None:
    """The weight of a word must not depend on the filter, or scores of two requests could not be compared."""
    whole = await look_for(haystack, "tune piano")
    narrow = await look_for(haystack, "tune piano", tags=("odd",))
    assert whole.terms == narrow.terms
    assert whole.frequency.tolist() == narrow.frequency.tolist() == [12, 12]
    assert whole.visible == narrow.visible == 412
