"""Any sentence-transformers model. The real library is an extra of 2 GB with torch, so a stand-in takes its place.

The stand-in has the three things that the embedder uses of `SentenceTransformer`: loading by name, `encode` and the
dimension. What is tested is therefore our side of it: threads, chunks, errors, names.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from embedders import hash_vector
from toolscout import EmbedderError, Scout, Settings
from toolscout.embedding import open_embedder
from toolscout.embedding.sentence_transformers import SentenceTransformersEmbedder
from toolscout.models import Document


class StandIn:
    """What `sentence_transformers.SentenceTransformer` is, as far as it is used."""

    loaded = 0
    threads: set[str] = set()  # noqa: RUF012 - the tests look at it from outside

    def __init__(self, name: str) -> None:
        if name == "no/such-model":
            raise OSError("no/such-model is not a local folder and is not a valid model identifier")
        type(self).loaded += 1
        self.name = name

    def get_sentence_embedding_dimension(self) -> int:
        return 48

    def encode(self, texts: Sequence[str], *, normalize_embeddings: bool) -> Any:
        assert normalize_embeddings
        self.threads.add(threading.current_thread().name)
        if any("out of memory" in text for text in texts):
            raise RuntimeError("CUDA out of memory")
        return np.stack([hash_vector(text, 48) for text in texts]).astype(np.float64)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> type[StandIn]:
    module: Any = ModuleType("sentence_transformers")
    module.SentenceTransformer = StandIn
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr(StandIn, "loaded", 0)
    monkeypatch.setattr(StandIn, "threads", set())
    return StandIn


async def test_the_model_is_loaded_with_the_first_text_and_only_once(stand_in: type[StandIn]) -> None:
    made = open_embedder(Settings(embedder="sentence-transformers:all-MiniLM-L6-v2"))
    assert isinstance(made, SentenceTransformersEmbedder)
    assert (made.model_id, made.dimension, stand_in.loaded) == ("sentence-transformers:all-MiniLM-L6-v2", 0, 0)
    await asyncio.gather(*(made.embed_queries(["send mail"]) for _ in range(5)))
    assert (made.dimension, stand_in.loaded) == (48, 1)
    await made.close()


async def test_vectors_are_single_precision_rows_in_order(stand_in: type[StandIn]) -> None:
    made = SentenceTransformersEmbedder("some/model")
    vectors = await made.embed_queries(["send mail", "delete file"])
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, [hash_vector("send mail", 48), hash_vector("delete file", 48)])
    assert (await made.embed_queries([])).shape == (0, 48)
    await made.close()


async def test_documents_go_in_chunks_off_the_event_loop(stand_in: type[StandIn]) -> None:
    made = SentenceTransformersEmbedder("some/model")
    told: list[tuple[int, int]] = []
    documents = [Document(name=f"t{n}", server="", description="", parameters="") for n in range(600)]
    vectors = await made.embed_documents(documents, lambda done, of: told.append((done, of)))
    assert vectors.shape == (600, 48)
    assert told == [(256, 600), (512, 600), (600, 600)]
    assert len(stand_in.threads) == 1
    assert threading.current_thread().name not in stand_in.threads
    await made.close()


async def test_a_model_that_cannot_be_loaded_is_an_embedder_error(stand_in: type[StandIn]) -> None:
    made = SentenceTransformersEmbedder("no/such-model")
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        await made.embed_queries(["x"])
    await made.close()


async def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "sentence_transformers", missing)
    made = SentenceTransformersEmbedder("some/model")
    with pytest.raises(EmbedderError, match="not installed") as caught:
        await made.embed_queries(["x"])
    assert "toolscout[sentence-transformers]" in caught.value.hint
    await made.close()


async def test_a_model_that_fails_at_work_degrades_a_search_and_no_more(stand_in: type[StandIn]) -> None:
    rows = [{"name": "send_mail", "description": "Send mail"}, {"name": "out", "description": "List memory"}]
    async with Scout.open(tools=rows, embedder=SentenceTransformersEmbedder("some/model")) as scout:
        assert (await scout.search_tools("send mail")).metadata.degraded is None
        answer = await scout.search_tools("memory, for I am out of memory")
        assert "CUDA out of memory" in (answer.metadata.degraded or "")
        assert "local__out" in [match.tool.key for match in answer]
