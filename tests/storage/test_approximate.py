"""Above `exact_rows`, a graph is searched: nearly the same tools, filtered inside the search, and never fewer."""

from __future__ import annotations

import asyncio
import builtins
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

ROWS, LENGTH, LIMIT, LEAST_OVERLAP = 3_000, 48, 50, 0.95
"""The guaranteed overlap between the best 50 of the graph and the best 50 of all."""


@pytest.fixture(scope="module")
def matrix() -> Any:
    return _unit(np.random.default_rng(7), ROWS)


@pytest.fixture(scope="module")
def graph(matrix: Any) -> VectorIndex:
    vectors = VectorIndex(matrix, exact_rows=100)
    vectors.wait()
    assert not vectors.exact
    return vectors


def _unit(random: np.random.Generator, count: int) -> Any:
    vectors = random.standard_normal((count, LENGTH), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _overlaps(graph: VectorIndex, matrix: Any, allowed: Any) -> list[float]:
    exact = VectorIndex(matrix, exact_rows=ROWS)
    count = int(allowed.sum())
    overlaps = []
    for query in _unit(np.random.default_rng(8), 25):
        best = graph.best_rows(query, allowed, count, LIMIT)
        assert len(best) == len(set(best.tolist())) == LIMIT
        assert allowed[best].all()
        overlaps.append(len(np.intersect1d(best, exact.best_rows(query, allowed, count, LIMIT))) / LIMIT)
    return overlaps


def test_the_graph_finds_nearly_what_exact_search_finds(graph: VectorIndex, matrix: Any) -> None:
    assert np.mean(_overlaps(graph, matrix, np.ones(ROWS, dtype=np.bool_))) >= LEAST_OVERLAP


@pytest.mark.parametrize("share", [0.5, 0.2, 0.1, 0.05])
def test_a_filtered_graph_gives_allowed_rows_only_and_the_full_number(
    graph: VectorIndex, matrix: Any, share: float
) -> None:
    allowed = np.random.default_rng(9).random(ROWS) < share
    assert int(allowed.sum()) > 100
    assert np.mean(_overlaps(graph, matrix, allowed)) >= 0.85


def test_if_the_graph_returns_too_few_rows_the_search_is_exact(graph: VectorIndex) -> None:
    """Few more than `exact_rows` are allowed, and most of them are requested: the graph alone returns fewer."""
    allowed = np.zeros(ROWS, dtype=np.bool_)
    allowed[np.random.default_rng(10).permutation(ROWS)[:101]] = True
    fewer = 0
    for query in _unit(np.random.default_rng(11), 25):
        fewer += len(graph._approximate(query, allowed, 101, 100)) < 100
        assert len(graph.best_rows(query, allowed, 101, 100)) == 100
    assert fewer


def test_few_enough_allowed_rows_are_searched_exactly(graph: VectorIndex, matrix: Any) -> None:
    allowed = np.zeros(ROWS, dtype=np.bool_)
    allowed[::40] = True
    assert min(_overlaps(graph, matrix, allowed)) == 1.0


def test_without_faiss_every_search_is_exact(matrix: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name == "faiss":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr("toolscout.storage.index.vectors.import_module", without)
    vectors = VectorIndex(matrix, exact_rows=100)
    vectors.wait()
    assert vectors.exact
    assert min(_overlaps(vectors, matrix, np.ones(ROWS, dtype=np.bool_))) == 1.0


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
        await asyncio.to_thread(_vectors(approximate).wait)
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
