"""The built-in model: unit vectors that depend only on their text, made on a few threads."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from toolscout.embedding import builtin
from toolscout.embedding.builtin import BuiltinEmbedder
from toolscout.embedding.manifest import Manifest
from toolscout.models import Document

TEXTS = [
    "send an email",
    "Send an e-mail to a customer, with attachments and a signature",
    "delete a file from the disk",
    "日本語のファイルを翻訳する",
    "x",
    "weather forecast " * 100,
]


def document(name: str, description: str = "") -> Document:
    return Document(name=name, server="", description=description, parameters="")


@pytest.fixture(scope="module")
def model(embedder: Any) -> BuiltinEmbedder:
    """Return the real model, loaded once for all tests."""
    inner: BuiltinEmbedder = embedder.inner
    return inner


async def test_vectors_have_the_manifests_dimension_and_unit_length(model: BuiltinEmbedder) -> None:
    for vectors in (await model.embed_queries(TEXTS), await model.embed_documents([document(text) for text in TEXTS])):
        assert vectors.shape == (len(TEXTS), model.dimension) == (len(TEXTS), 384)
        assert vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


async def test_a_text_has_the_same_vector_alone_and_in_any_company(model: BuiltinEmbedder) -> None:
    alone = np.concatenate([await model.embed_queries([text]) for text in TEXTS])
    assert np.array_equal(await model.embed_queries(TEXTS), alone)
    assert np.array_equal(await model.embed_queries(TEXTS[::-1]), alone[::-1])
    assert np.array_equal((await model.embed_queries([*TEXTS * 30, TEXTS[0]]))[-1], alone[0])


async def test_another_copy_of_the_model_gives_the_same_bits(model: BuiltinEmbedder) -> None:
    other = BuiltinEmbedder(threads=1)
    assert np.array_equal(await other.embed_queries(TEXTS[:3]), (await model.embed_queries(TEXTS))[:3])
    await other.close()


async def test_near_meanings_are_nearer_than_far_ones(model: BuiltinEmbedder) -> None:
    near = await model.embed_documents(
        [document("send email", "Send an email message"), document("delete file", "Remove a file")]
    )
    queries = await model.embed_queries(["mail something to my boss", "erase a document from disk"])
    cosine = queries @ near.T
    assert cosine[0, 0] > cosine[0, 1] + 0.1
    assert cosine[1, 1] > cosine[1, 0] + 0.1


async def test_what_lies_past_the_token_limit_does_not_count(model: BuiltinEmbedder) -> None:
    words = "bank " * (2 * model.manifest.query_max_tokens)
    short, long = await model.embed_queries([words, words + "elephant"])
    assert np.array_equal(short, long)


async def test_no_texts_make_no_vectors(model: BuiltinEmbedder) -> None:
    assert (await model.embed_queries([])).shape == (0, 384)
    assert (await model.embed_documents([])).shape == (0, 384)


async def test_progress_is_reported_up_to_the_total(model: BuiltinEmbedder) -> None:
    told: list[tuple[int, int]] = []
    await model.embed_documents([document("x")] * 150, lambda done, of: told.append((done, of)))
    assert told == [(64, 150), (128, 150), (150, 150)]


async def test_embedding_does_not_block_the_event_loop(model: BuiltinEmbedder) -> None:
    long = asyncio.ensure_future(model.embed_documents([document(f"tool {number}") for number in range(128)]))
    turns = 0
    while not long.done():
        await asyncio.sleep(0)
        turns += 1
    assert (await long).shape == (128, 384)
    assert turns > 128, "with the work on the loop, it would turn twice or so for each batch"


class Watched:
    """The model's session, noting which threads run it and how many do at once."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._running = 0
        self.most = 0
        self.threads: set[str] = set()

    def run(self, *given: Any) -> Any:
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)
            self.threads.add(threading.current_thread().name)
        try:
            return self._session.run(*given)
        finally:
            with self._lock:
                self._running -= 1


@pytest.mark.parametrize("threads", [0, 1, 2])
async def test_no_more_threads_work_than_are_allowed(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    tokenizer, session = builtin.load_model(Manifest.read(), 1)
    watched = Watched(session)
    monkeypatch.setattr(builtin, "load_model", lambda *_: (tokenizer, watched))
    bounded = BuiltinEmbedder(threads=threads)
    await asyncio.gather(*(bounded.embed_documents([document("x")] * 20) for _ in range(5)))
    assert 1 <= watched.most <= max(1, threads)
    assert all(name.startswith("toolscout-embed-document") for name in watched.threads)
    await bounded.close()


async def test_queries_do_not_wait_behind_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query is answered while every document thread is blocked, because queries have their own threads."""
    tokenizer, session = builtin.load_model(Manifest.read(), 1)
    release = threading.Event()

    class Held:
        def run(self, *given: Any) -> Any:
            if threading.current_thread().name.startswith("toolscout-embed-document"):
                assert release.wait(60)
            return session.run(*given)

    monkeypatch.setattr(builtin, "load_model", lambda *_: (tokenizer, Held()))
    blocked = BuiltinEmbedder(threads=1)
    documents = asyncio.ensure_future(blocked.embed_documents([document("x")]))
    async with asyncio.timeout(60):
        assert (await blocked.embed_queries(["send"])).shape == (1, 384)
    assert not documents.done()
    release.set()
    await documents
    await blocked.close()
