"""The wrapper of every embedder: cached queries, a pause after a failure, a check of every vector."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from embedders import HashEmbedder, hash_vector
from toolscout import DimensionError, EmbedderError, Settings
from toolscout.embedding.guarded import GuardedEmbedder
from toolscout.models import Document

DOWN = EmbedderError("the model is out to lunch")


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def inner() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def guarded(inner: HashEmbedder, clock: Clock) -> GuardedEmbedder:
    settings = Settings(query_cache_size=3, query_cache_ttl_s=300, embed_retry_s=5)
    return GuardedEmbedder(inner, settings, clock)


async def test_a_query_is_embedded_once_while_it_is_remembered(
    guarded: GuardedEmbedder, inner: HashEmbedder, clock: Clock
) -> None:
    first = await guarded.embed_queries(["send mail"])
    clock.now += 299.9
    assert np.array_equal(await guarded.embed_queries(["send mail"]), first)
    assert inner.queries == ["send mail"]
    clock.now += 0.2
    assert np.array_equal(await guarded.embed_queries(["send mail"]), first)
    assert inner.queries == ["send mail"] * 2


async def test_only_queries_that_are_not_cached_are_embedded_and_each_once(
    guarded: GuardedEmbedder, inner: HashEmbedder
) -> None:
    await guarded.embed_queries(["b"])
    vectors = await guarded.embed_queries(["a", "b", "c", "a"])
    assert inner.queries == ["b", "a", "c"]
    assert np.array_equal(vectors, [hash_vector(text) for text in ("a", "b", "c", "a")])


async def test_the_least_recently_used_query_is_forgotten_first(guarded: GuardedEmbedder, inner: HashEmbedder) -> None:
    for text in ("a", "b", "c", "a", "d"):
        await guarded.embed_queries([text])
    inner.queries.clear()
    await guarded.embed_queries(["a", "c", "d"])
    assert inner.queries == []
    await guarded.embed_queries(["b"])
    assert inner.queries == ["b"]


async def test_a_cache_of_no_size_remembers_nothing(inner: HashEmbedder) -> None:
    guarded = GuardedEmbedder(inner, Settings(query_cache_size=0))
    for _ in range(2):
        assert (await guarded.embed_queries(["a"])).shape == (1, 64)
    assert inner.queries == ["a", "a"]


async def test_after_a_failure_queries_fail_fast_until_the_window_is_over(
    guarded: GuardedEmbedder, inner: HashEmbedder, clock: Clock
) -> None:
    inner.failure = DOWN
    for _ in range(3):
        with pytest.raises(EmbedderError, match="out to lunch"):
            await guarded.embed_queries(["a"])
    assert inner.queries == ["a"]
    clock.now += 5
    with pytest.raises(EmbedderError):
        await guarded.embed_queries(["a"])
    assert inner.queries == ["a", "a"]


async def test_failing_fast_a_thousand_times_holds_on_to_nothing(guarded: GuardedEmbedder, inner: HashEmbedder) -> None:
    """The stored error is raised many times. Its traceback must not grow each time."""
    inner.failure = DOWN
    lengths = set()
    for _ in range(50):
        with pytest.raises(EmbedderError) as caught:
            await guarded.embed_queries(["a"])
        lengths.add(len(caught.traceback))
    assert len(lengths) <= 2


async def test_it_recovers_without_a_restart(guarded: GuardedEmbedder, inner: HashEmbedder, clock: Clock) -> None:
    inner.failure = DOWN
    with pytest.raises(EmbedderError):
        await guarded.embed_queries(["a"])
    inner.failure = None
    clock.now += 5
    assert np.array_equal(await guarded.embed_queries(["a"]), [hash_vector("a")])
    assert np.array_equal(await guarded.embed_queries(["b"]), [hash_vector("b")])


async def test_what_is_remembered_is_answered_while_the_embedder_is_down(
    guarded: GuardedEmbedder, inner: HashEmbedder
) -> None:
    await guarded.embed_queries(["a"])
    inner.failure = DOWN
    with pytest.raises(EmbedderError):
        await guarded.embed_queries(["b"])
    assert np.array_equal(await guarded.embed_queries(["a"]), [hash_vector("a")])


async def test_documents_are_always_embedded_and_their_success_ends_the_pause(
    guarded: GuardedEmbedder, inner: HashEmbedder
) -> None:
    inner.failure = DOWN
    with pytest.raises(EmbedderError):
        await guarded.embed_queries(["a"])
    inner.failure = None
    await guarded.embed_documents([Document(name="x", server="", description="", parameters="")])
    assert (await guarded.embed_queries(["a"])).shape == (1, 64)


@pytest.mark.parametrize("error", [OSError("no route"), RuntimeError("onnx"), ValueError("x"), TimeoutError()])
async def test_whatever_a_model_raises_is_an_embedder_error(
    guarded: GuardedEmbedder, inner: HashEmbedder, error: Exception
) -> None:
    inner.failure = error
    with pytest.raises(EmbedderError, match=f"hash-1 failed: {type(error).__name__}") as caught:
        await guarded.embed_queries(["a"])
    assert caught.value.__cause__ is error
    with pytest.raises(EmbedderError):
        await guarded.embed_documents([Document(name="x", server="", description="", parameters="")])


async def test_a_cancelled_caller_does_not_count_as_a_failure(guarded: GuardedEmbedder, inner: HashEmbedder) -> None:
    waiting = asyncio.Event()

    async def never(texts: Sequence[str]) -> Any:
        waiting.set()
        await asyncio.Event().wait()

    answer, inner.embed_queries = inner.embed_queries, never  # type: ignore[method-assign]
    leaving = asyncio.ensure_future(guarded.embed_queries(["a"]))
    await waiting.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    inner.embed_queries = answer  # type: ignore[method-assign]
    assert (await guarded.embed_queries(["a"])).shape == (1, 64)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (np.ones((1, 63), dtype=np.float32), DimensionError),
        (np.ones((2, 64), dtype=np.float32), DimensionError),
        (np.ones(64, dtype=np.float32), DimensionError),
        (np.full((1, 64), np.nan, dtype=np.float32), EmbedderError),
        (np.full((1, 64), np.inf, dtype=np.float32), EmbedderError),
    ],
)
async def test_vectors_that_cannot_be_right_are_refused_and_not_remembered(
    guarded: GuardedEmbedder, inner: HashEmbedder, clock: Clock, given: Any, error: type[EmbedderError]
) -> None:
    async def wrong(texts: Sequence[str]) -> Any:
        return given

    answer, inner.embed_queries = inner.embed_queries, wrong  # type: ignore[method-assign]
    with pytest.raises(error):
        await guarded.embed_queries(["a"])
    inner.embed_queries = answer  # type: ignore[method-assign]
    clock.now += 5
    assert np.array_equal(await guarded.embed_queries(["a"]), [hash_vector("a")])


async def test_it_speaks_for_the_embedder_within_and_closes_it(guarded: GuardedEmbedder, inner: HashEmbedder) -> None:
    assert (guarded.model_id, guarded.dimension) == ("hash-1", 64)
    await guarded.close()
    assert inner.closed
