"""The built-in model: ONNX Runtime and a tokenizer, offline, on bounded threads, never on the event loop.

Each text goes through the model on its own. Activations are quantised for a whole batch at once, so in a batch the
vector of a text would depend on its neighbours; alone, it is the same in every process and in every order of
indexing. On two cores, two threads with one text each are as fast as padded batches.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolscout.embedding.manifest import Manifest
from toolscout.errors import DimensionError, EmbedderError
from toolscout.models import Document
from toolscout.ports import Progress

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_REPORT_EVERY = 64


class BuiltinEmbedder:
    """An embedder from a model folder; the weights are loaded when the first text comes."""

    def __init__(self, *, folder: str | Path | None = None, threads: int = 2) -> None:
        """Read the manifest; nothing heavy happens yet."""
        self.manifest = Manifest.read(folder)
        self._loading = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        # Indexing must not make a search wait: documents and queries have threads of their own.
        self._query_threads = ThreadPoolExecutor(max(1, threads), "toolscout-embed-query")
        self._document_threads = ThreadPoolExecutor(max(1, threads), "toolscout-embed-document")

    @property
    def model_id(self) -> str:
        """Name the model."""
        return self.manifest.id

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""
        return self.manifest.dimension

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        """Return one unit vector for each query."""
        filled = [self.manifest.query_template.format(text=text) for text in texts]
        return await self._embed(filled, self.manifest.query_max_tokens, self._query_threads, None)

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        """Return one unit vector for each document."""
        texts = [document.text(self.manifest.document_template) for document in documents]
        return await self._embed(texts, self.manifest.max_tokens, self._document_threads, progress)

    async def close(self) -> None:
        """End the threads; a text under way is finished first."""
        for pool in (self._query_threads, self._document_threads):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)
        self._loaded = None

    async def _embed(
        self, texts: Sequence[str], max_tokens: int, pool: ThreadPoolExecutor, progress: Progress | None
    ) -> FloatArray:
        import numpy as np

        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        run = asyncio.get_running_loop().run_in_executor
        done = 0
        for start in range(0, len(texts), _REPORT_EVERY):
            batch = range(start, min(start + _REPORT_EVERY, len(texts)))
            await asyncio.gather(
                *(run(pool, partial(self._embed_one, texts, vectors, row, max_tokens)) for row in batch)
            )
            done += len(batch)
            if progress:
                progress(done, len(texts))
        return vectors

    def _embed_one(self, texts: Sequence[str], vectors: FloatArray, row: int, max_tokens: int) -> None:
        import numpy as np

        tokenizer, session = self._load()
        ids = tokenizer.encode(texts[row]).ids
        if len(ids) > max_tokens:
            ids = [*ids[: max_tokens - 1], ids[-1]]
        given = np.array([ids], dtype=np.int64)
        output = session.run(None, {"input_ids": given, "attention_mask": np.ones_like(given)})[0]
        if output.shape[1] != self.dimension:
            raise DimensionError(
                f"model {self.model_id} gave vectors of {output.shape[1]} numbers, its manifest says {self.dimension}",
                hint=f"correct `dimension` in {self.manifest.folder / 'manifest.json'}",
            )
        vectors[row] = output[0]

    def _load(self) -> tuple[Any, Any]:
        loaded = self._loaded
        if loaded is None:
            with self._loading:
                loaded = self._loaded = self._loaded or _load(self.manifest)
        return loaded


def _load(manifest: Manifest) -> tuple[Any, Any]:
    try:
        import onnxruntime
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(manifest.folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(max(manifest.max_tokens, manifest.query_max_tokens))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        model = str(manifest.folder / "model.onnx")
        return tokenizer, onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EmbedderError(
            f"the model in {manifest.folder} cannot be loaded: {error}",
            hint="reinstall toolscout, or run `toolscout doctor`",
        ) from error
