"""Any sentence-transformers model, with `toolscout[sentence-transformers]` installed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from toolscout.errors import EmbedderError
from toolscout.models import Document
from toolscout.ports import Progress

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_CHUNK = 256


class SentenceTransformersEmbedder:
    """An embedder around `SentenceTransformer(name)`. The model is loaded with the first text."""

    def __init__(self, name: str) -> None:
        """Take the name of a model, or its folder."""
        self._name = name
        self._model: Any = None
        self._thread = ThreadPoolExecutor(1, "toolscout-embed")

    @property
    def model_id(self) -> str:
        """Name the model."""
        return f"sentence-transformers:{self._name}"

    @property
    def dimension(self) -> int:
        """Return the length of a vector, 0 until the model is loaded."""
        return int(self._model.get_sentence_embedding_dimension()) if self._model is not None else 0

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        """Return one unit vector for each query."""
        return await self._embed_all(texts)

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        """Return one unit vector for each document."""
        return await self._embed_all([document.text() for document in documents], progress)

    async def _embed_all(self, texts: Sequence[str], progress: Progress | None = None) -> FloatArray:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, list(texts), progress)

    async def close(self) -> None:
        """End the thread and let the model go."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._model = None

    def _embed(self, texts: list[str], progress: Progress | None) -> FloatArray:
        import numpy as np

        model = self._load()
        parts = []
        for start in range(0, len(texts), _CHUNK):
            chunk = texts[start : start + _CHUNK]
            parts.append(np.asarray(model.encode(chunk, normalize_embeddings=True), dtype=np.float32))
            if progress:
                progress(start + len(chunk), len(texts))
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), dtype=np.float32)

    def _load(self) -> Any:
        if self._model is None:
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError as error:
                raise EmbedderError(
                    "sentence-transformers is not installed", hint="pip install 'toolscout[sentence-transformers]'"
                ) from error
            try:
                self._model = SentenceTransformer(self._name)
            except Exception as error:
                raise EmbedderError(
                    f"the model {self._name!r} cannot be loaded: {error}", hint="check its name, or use a folder"
                ) from error
        return self._model
