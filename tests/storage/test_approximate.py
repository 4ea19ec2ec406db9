"""Above `exact_rows`, codes are compared first: nearly the same tools, of the allowed ones alone, and never fewer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from catalogues import OpenStore, look_for, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout.models import Scope
from toolscout.ports import Store
from toolscout.storage.index.vectors import VectorIndex
from toolscout.storage.postgres import candidates
from toolscout.storage.postgres.store import PostgresStore
from toolscout.storage.sqlite.store import SqliteStore

pytestmark = guarantee("store:contract")

ROWS, LENGTH, LIMIT, LEAST_OVERLAP = 30_000, 384, 50, 0.95
"""The guaranteed overlap between the best 50 that are found with codes and the best 50 of all."""


@pytest.fixture(scope="module")
def matrix() -> Any:
    return _unit(np.random.default_rng(7), ROWS)


@pytest.fixture(scope="module")
def coded(matrix: Any) -> VectorIndex:
    vectors = VectorIndex(matrix, exact_rows=100)
    assert not vectors.exact
    return vectors


def _unit(random: np.random.Generator, count: int) -> Any:
    """Draw vectors around a thousand centres, as the texts of tools lie around topics (cosine about .7)."""
    centres = np.random.default_rng(6).standard_normal((1_000, LENGTH), dtype=np.float32)
    vectors = centres[random.integers(0, len(centres), count)]
    vectors += random.standard_normal((count, LENGTH), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _overlaps(coded: VectorIndex, matrix: Any, allowed: Any) -> list[float]:
    exact = VectorIndex(matrix, exact_rows=ROWS)
    count = int(allowed.sum())
    overlaps = []
    for query in _unit(np.random.default_rng(8), 25):
        best = coded.best_rows(query, allowed, count, LIMIT)
        assert len(best) == len(set(best.tolist())) == LIMIT
        assert allowed[best].all()
        overlaps.append(len(np.intersect1d(best, exact.best_rows(query, allowed, count, LIMIT))) / LIMIT)
    return overlaps


def test_with_codes_nearly_the_same_is_found_as_by_exact_search(coded: VectorIndex, matrix: Any) -> None:
    assert np.mean(_overlaps(coded, matrix, np.ones(ROWS, dtype=np.bool_))) >= LEAST_OVERLAP


@pytest.mark.parametrize("share", [0.5, 0.2, 0.1, 0.05])
def test_only_allowed_rows_are_found_and_the_full_number(coded: VectorIndex, matrix: Any, share: float) -> None:
    allowed = np.random.default_rng(9).random(ROWS) < share
    assert np.mean(_overlaps(coded, matrix, allowed)) >= LEAST_OVERLAP


def test_few_enough_allowed_rows_are_searched_exactly(coded: VectorIndex, matrix: Any) -> None:
    allowed = np.zeros(ROWS, dtype=np.bool_)
    allowed[:: ROWS // 100] = True
    assert min(_overlaps(coded, matrix, allowed)) == 1.0


@guarantee("access:absent-equals-forbidden")
@pytest.mark.parametrize("share", [0.9, 0.5, 0.2])
def test_hidden_rows_change_nothing_that_is_found(coded: VectorIndex, matrix: Any, share: float) -> None:
    allowed = np.random.default_rng(12).random(ROWS) < share
    visible = np.flatnonzero(allowed)
    alone = VectorIndex(matrix[visible], exact_rows=100)
    everything = np.ones(len(visible), dtype=np.bool_)
    for query in _unit(np.random.default_rng(13), 25):
        with_hidden = coded.best_rows(query, allowed, len(visible), LIMIT)
        without = visible[alone.best_rows(query, everything, len(visible), LIMIT)]
        assert sorted(with_hidden.tolist()) == sorted(without.tolist())


@guarantee("access:absent-equals-forbidden")
def test_equal_vectors_of_hidden_rows_take_no_place(coded: VectorIndex, matrix: Any) -> None:
    allowed = np.zeros(2 * ROWS, dtype=np.bool_)
    allowed[::2] = True
    doubled = VectorIndex(np.repeat(matrix, 2, axis=0), exact_rows=100)
    for query in _unit(np.random.default_rng(14), 10):
        found = doubled.best_rows(query, allowed, ROWS, LIMIT) // 2
        without = coded.best_rows(query, np.ones(ROWS, dtype=np.bool_), ROWS, LIMIT)
        assert sorted(found.tolist()) == sorted(without.tolist())


async def test_a_store_past_its_exact_rows_gives_nearly_the_same_candidates(
    new_store: OpenStore, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact, approximate = await new_store(), await new_store(exact_rows=200)
    random = np.random.default_rng(3)
    rows = [
        {
            "name": f"tool_{number:04}",
            "server": "graph",
            "description": " ".join(f"word{word}" for word in random.integers(0, 400, 8)),
            "tags": ["even" if number % 2 == 0 else "odd"],
        }
        for number in range(1_200)
    ]
    for store in (exact, approximate):
        await publish(store, rows, embedder=HashEmbedder())
    plans = _record_plans(monkeypatch)
    if engine != "postgres-large":  # whose graph is in the database, built when publishing returns
        assert _vectors(exact).exact
        assert not _vectors(approximate).exact
    narrows: list[dict[str, Any]] = [{}, {"tags": ("odd",)}]
    for narrow in narrows:
        overlaps = []
        for number in range(10):
            query = f"word{number} word{number + 20} word{number + 40}"
            best = {item.key for item in (await look_for(exact, query, 50, **narrow)).facets}
            approximate_best = {item.key for item in (await look_for(approximate, query, 50, **narrow)).facets}
            overlaps.append(len(best & approximate_best) / len(best))
        assert np.mean(overlaps) >= LEAST_OVERLAP
    assert len(plans) == (20 if engine == "postgres-large" else 0)
    for plan in plans:
        assert "Index Scan using search_rows_hnsw_" in plan


def _record_plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the plan of every graph search in the database. Sorting is off: for so few rows it would be preferred."""
    plans: list[str] = []
    search = candidates.search_graph

    async def explain(db: Any, *arguments: Any) -> Any:
        await db.execute("SET LOCAL enable_sort = off")
        with monkeypatch.context() as patch:
            patch.setattr(candidates, "GRAPH_QUERY", f"EXPLAIN {candidates.GRAPH_QUERY}")
            plans.append("\n".join(map(str, await search(db, *arguments))))
        return await search(db, *arguments)

    monkeypatch.setattr(candidates, "search_graph", explain)
    return plans


def _vectors(store: Store) -> VectorIndex:
    assert isinstance(store, SqliteStore | PostgresStore)
    vectors: VectorIndex = store.segments.snapshot(Scope()).segments[0].vectors
    return vectors
