"""What a SQLite store reads of a change, and works into what it has loaded, equals what it would read anew."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from catalogues import many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout.models import Scope
from toolscout.policy.rules import Rules
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.index.segment import Segment
from toolscout.storage.sqlite import reads
from toolscout.storage.sqlite.store import SqliteStore

pytestmark = guarantee("store:contract")

SERVERS = ("alpha", "beta", "gamma", "zeta")


def columns(segment: Segment) -> list[Any]:
    """Return everything that a segment holds."""
    words, vectors = vars(segment.words), vars(segment.vectors)
    held = {key: value for key, value in vars(segment).items() if key not in ("words", "vectors")}
    return [held, words, vectors]


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key, value in one.items():
            assert_equal(value, other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_equal(left, right)
    else:
        assert one == other


async def change(store: SqliteStore, rng: random.Random, embedder: HashEmbedder) -> None:
    """Publish, switch or remove something."""
    server, step = rng.choice(SERVERS), rng.randrange(6)
    count = rng.randrange(1, 12)
    rows = many(count, server=server)
    for row in rng.sample(rows, rng.randrange(count + 1)):
        row["description"] = f"{row['description']} {rng.choice(('softly', 'loudly', 'at night'))}"
    if step == 0:
        await store.remove_server(Scope(), server)
    elif step == 1 and (facets := store.segments.get(Scope()).facets):  # type: ignore[union-attr]
        await store.set_enabled(Scope(), [rng.choice(facets).key], rng.random() < 0.5)
    elif step == 2:
        await publish(store, rows, model_id=embedder.model_id)  # without vectors, as when the embedder is down
    else:
        await publish(store, rows, embedder=embedder)


@pytest.mark.parametrize("exact_rows", [2, 1_000], ids=["with sign codes", "exact"])
async def test_a_catalogue_that_changes_equals_one_that_is_read_anew(exact_rows: int) -> None:
    store = open_store(Settings(store="memory:", exact_rows=exact_rows), Rules())
    assert isinstance(store, SqliteStore)
    await store.open()
    embedder, rng = HashEmbedder(), random.Random(5)
    for _ in range(120):
        await change(store, rng, embedder)
        loaded = store.segments.get(Scope())
        assert loaded is not None
        anew = reads.load_segment(store.connection, Scope(), exact_rows, "memory:")
        assert_equal(columns(loaded), columns(anew))
    await store.close()


async def test_a_change_of_one_tool_reads_no_other(tmp_path: Any) -> None:
    store = open_store(Settings(store=f"sqlite:///{tmp_path / 'catalogue.db'}"), Rules())
    assert isinstance(store, SqliteStore)
    await store.open()
    await publish(store, many(50), embedder=HashEmbedder())
    before = store.segments.get(Scope())
    assert before is not None
    await store.set_enabled(Scope(), [before.facets[7].key], enabled=False)
    after = store.segments.get(Scope())
    assert after is not None
    assert not after.facets[7].enabled
    kept = [one is other for one, other in zip(before.facets, after.facets, strict=True)]
    assert kept.count(False) == 1
    await store.close()
