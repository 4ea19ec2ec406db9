"""What every embedder gets: a cache of query vectors, a pause after a failure, and a check of every vector."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from toolscout.errors import DimensionError, EmbedderError
from toolscout.models import Document
from toolscout.ports import Embedder, Progress
from toolscout.settings import Settings

if TYPE_CHECKING:
    from toolscout.models import FloatArray


class GuardedEmbedder:
    """An embedder around another. After a failure, queries fail fast for a while, then it is asked again."""

    def __init__(self, inner: Embedder, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        """Wrap `inner`; `clock` is there for tests."""
        self._inner = inner
        self._settings = settings
        self._clock = clock
        self._cache: OrderedDict[str, tuple[float, FloatArray]] = OrderedDict()
        self._failed: tuple[float, EmbedderError] | None = None

    @property
    def model_id(self) -> str:
        """Name the model."""
        return self._inner.model_id

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""
        return self._inner.dimension

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        """Return one vector for each query, from the cache where it is fresh."""
        import numpy as np

        known = {text: vector for text in texts if (vector := self._recall(text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            for text, vector in zip(missing, await self._ask(missing), strict=True):
                known[text] = vector
                self._remember(text, vector)
        return np.stack([known[text] for text in texts])

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        """Return one vector for each document; indexing always asks, so that it notices a recovery at once."""
        vectors = await self._guarded(self._inner.embed_documents(documents, progress), len(documents))
        self._failed = None
        return vectors

    async def close(self) -> None:
        """Close the embedder within."""
        await self._inner.close()

    async def _ask(self, texts: list[str]) -> FloatArray:
        if self._failed and self._clock() < self._failed[0]:
            raise self._failed[1].with_traceback(None)
        try:
            # Half a surrogate pair stops any tokenizer: one such query must not look like an embedder that is down.
            writable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            vectors = await self._guarded(self._inner.embed_queries(writable), len(texts))
        except EmbedderError as error:
            self._failed = (self._clock() + self._settings.embed_retry_s, error)
            raise
        self._failed = None
        return vectors

    async def _guarded(self, asked: Awaitable[FloatArray], count: int) -> FloatArray:
        """Whatever a model or its driver raises is an embedder that is down, never the end of a search."""
        try:
            vectors = await asked
        except EmbedderError:
            raise
        except Exception as error:
            raise EmbedderError(
                f"{self.model_id} failed: {type(error).__name__}: {error}", hint="run `toolscout doctor`"
            ) from error
        return self._checked(vectors, count)

    def _checked(self, vectors: FloatArray, count: int) -> FloatArray:
        import numpy as np

        if vectors.ndim != 2 or len(vectors) != count or (self.dimension and vectors.shape[1] != self.dimension):
            raise DimensionError(
                f"{self.model_id} gave an array of {vectors.shape}, expected ({count}, {self.dimension})",
                hint="the embedder and its manifest disagree; vectors of two lengths are never mixed",
            )
        if not np.isfinite(vectors).all():
            raise EmbedderError(
                f"{self.model_id} gave vectors that are not finite numbers", hint="run `toolscout doctor`"
            )
        return vectors

    def _recall(self, text: str) -> FloatArray | None:
        found = self._cache.get(text)
        if found is None or self._clock() >= found[0]:
            return None
        self._cache.move_to_end(text)
        return found[1]

    def _remember(self, text: str, vector: FloatArray) -> None:
        self._cache[text] = (self._clock() + self._settings.query_cache_ttl_s, vector)
        self._cache.move_to_end(text)
        while len(self._cache) > self._settings.query_cache_size:
            self._cache.popitem(last=False)
