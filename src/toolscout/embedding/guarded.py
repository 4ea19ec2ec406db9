"""A wrapper of every embedder: a cache of query vectors, a pause after a failure, and a check of every vector."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from cachetools import TTLCache

from toolscout.errors import DimensionError, EmbedderError
from toolscout.models import Document
from toolscout.ports import Embedder, Progress
from toolscout.settings import Settings
from toolscout.telemetry import Metrics

if TYPE_CHECKING:
    from toolscout.models import FloatArray


class GuardedEmbedder:
    """An embedder around another. After a failure, queries fail at once for a while, then it is tried again."""

    def __init__(
        self,
        inner: Embedder,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        metrics: Metrics | None = None,
    ) -> None:
        """Wrap `inner`, and count lookups in the cache. Tests replace `clock`."""
        self._inner = inner
        self._settings = settings
        self._clock = clock
        self._lookups = (metrics or Metrics()).cache
        self._cache: TTLCache[str, FloatArray] = TTLCache(
            settings.query_cache_size, settings.query_cache_ttl_s, timer=clock
        )
        self._failure: tuple[float, EmbedderError] | None = None

    @property
    def model_id(self) -> str:
        """Name the model."""
        return self._inner.model_id

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""
        return self._inner.dimension

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        """Return one vector for each query, from the cache if it is there."""
        import numpy as np

        vectors = {text: vector for text in texts if (vector := self._cache.get(text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        self._lookups.add("query_vectors", "hit", by=len(vectors))
        self._lookups.add("query_vectors", "miss", by=len(missing))
        if missing:
            for text, vector in zip(missing, await self._embed(missing), strict=True):
                vectors[text] = vector
                if self._cache.maxsize:
                    self._cache[text] = vector
        return np.stack([vectors[text] for text in texts])

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        """Return one vector for each document. There is no pause here, so indexing notices a recovery at once."""
        vectors = await self._checked(self._inner.embed_documents(documents, progress), len(documents))
        self._failure = None
        return vectors

    async def close(self) -> None:
        """Close the inner embedder."""
        await self._inner.close()

    async def _embed(self, texts: list[str]) -> FloatArray:
        if self._failure and self._clock() < self._failure[0]:
            raise self._failure[1].with_traceback(None)
        try:
            # A lone surrogate makes every tokenizer fail. Such a query must not count as a failure of the embedder.
            valid = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            vectors = await self._checked(self._inner.embed_queries(valid), len(texts))
        except EmbedderError as error:
            self._failure = (self._clock() + self._settings.embed_retry_s, error)
            raise
        self._failure = None
        return vectors

    async def _checked(self, request: Awaitable[FloatArray], count: int) -> FloatArray:
        """Return the vectors of a request. Anything that the model raises becomes an EmbedderError."""
        try:
            vectors = await request
        except EmbedderError:
            raise
        except Exception as error:
            raise EmbedderError(
                f"{self.model_id} failed: {type(error).__name__}: {error}", hint="run `toolscout doctor`"
            ) from error
        self._check(vectors, count)
        return vectors

    def _check(self, vectors: FloatArray, count: int) -> None:
        import numpy as np

        if vectors.ndim != 2 or len(vectors) != count or (self.dimension and vectors.shape[1] != self.dimension):
            raise DimensionError(
                f"{self.model_id} returned an array of {vectors.shape} instead of ({count}, {self.dimension})",
                hint="correct the dimension in the manifest or the settings: vectors of two lengths are never mixed",
            )
        if not np.isfinite(vectors).all():
            raise EmbedderError(
                f"{self.model_id} returned vectors with numbers that are not finite", hint="run `toolscout doctor`"
            )
