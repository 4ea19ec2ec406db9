"""A small real embedder for tests that are about stores and faults, not about meaning: hashed words, no model."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from toolscout.models import Document
from toolscout.ports import Progress
from toolscout.text import terms

if TYPE_CHECKING:
    from toolscout.models import FloatArray


def hash_vector(text: str, dimension: int = 64) -> FloatArray:
    """Add up a fixed random direction for each word: texts that share words are near."""
    total = np.full(dimension, 1e-6, dtype=np.float32)
    for term in terms(text):
        total += _direction(term, dimension)
    return total / np.linalg.norm(total)


@lru_cache(maxsize=10_000)
def _direction(term: str, dimension: int) -> FloatArray:
    seed = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(dimension, dtype=np.float32)


class HashEmbedder:
    """An embedder that can be told to fail: `failure` is raised instead of an answer while it is set."""

    def __init__(self, model_id: str = "hash-1", dimension: int = 64) -> None:
        self.model_id = model_id
        self.dimension = dimension
        self.failure: Exception | None = None
        self.queries: list[str] = []
        self.documents: list[Document] = []
        self.closed = False

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        self.queries.extend(texts)
        return self._answer(texts)

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        self.documents.extend(documents)
        return self._answer([document.text() for document in documents])

    async def close(self) -> None:
        self.closed = True

    def _answer(self, texts: Sequence[str]) -> FloatArray:
        if self.failure:
            raise self.failure
        return np.stack([hash_vector(text, self.dimension) for text in texts])


class GatedEmbedder(HashEmbedder):
    """Makes vectors of documents only while its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        vectors = await super().embed_documents(documents, progress)
        await self.gate.wait()
        return vectors
