"""The built-in model: ONNX Runtime and a tokenizer, offline, on a few threads, never on the event loop.

The model gets one text at a time. It quantises activations for a whole batch, so in a batch the vector of a text would
depend on the other texts. Alone, it is the same in every process and in every order of indexing. On two cores, two
threads with one text each are as fast as padded batches.

Only a long query that comes alone gets several threads. A short one takes a millisecond on one, and threads that wait
for one another cost several times that. Where queries come side by side, each has its own thread.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolscout.embedding.manifest import Manifest
from toolscout.errors import DimensionError, EmbedderError
from toolscout.models import Document
from toolscout.ports import Progress

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_REPORT_EVERY = 64
_LONG_TOKENS = 64
"""From this length on, a query is faster with several threads."""


class BuiltinEmbedder:
    """An embedder from a model folder. The weights are loaded with the first text."""

    def __init__(self, *, folder: str | Path | None = None, threads: int = 2) -> None:
        """Read the manifest. The model itself is loaded later."""
        self.manifest = Manifest.read(folder)
        self._load_lock = threading.Lock()
        self._loaded: dict[int, tuple[Any, Any]] = {}
        self._threads = max(1, threads)
        self._queries = 0
        # Documents and queries have separate threads, so that a search does not wait for indexing.
        self._query_threads = ThreadPoolExecutor(self._threads, "toolscout-embed-query")
        self._document_threads = ThreadPoolExecutor(self._threads, "toolscout-embed-document")

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
        prompts = [self.manifest.query_template.format(text=text) for text in texts]
        self._queries += len(prompts)
        try:
            return await self._embed(prompts, self.manifest.query_max_tokens, self._query_threads, None)
        finally:
            self._queries -= len(prompts)

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        """Return one unit vector for each document."""
        texts = [document.text(self.manifest.document_template) for document in documents]
        return await self._embed(texts, self.manifest.max_tokens, self._document_threads, progress)

    async def close(self) -> None:
        """End the threads, after the text that each is working on."""
        for pool in (self._query_threads, self._document_threads):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)
        self._loaded.clear()

    async def _embed(
        self, texts: Sequence[str], max_tokens: int, pool: ThreadPoolExecutor, progress: Progress | None
    ) -> FloatArray:
        import numpy as np

        run, is_query = asyncio.get_running_loop().run_in_executor, pool is self._query_threads
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), _REPORT_EVERY):
            batch = texts[start : start + _REPORT_EVERY]
            rows = await asyncio.gather(*(run(pool, self._embed_one, text, max_tokens, is_query) for text in batch))
            vectors[start : start + len(batch)] = rows
            if progress:
                progress(start + len(batch), len(texts))
        return vectors

    def _embed_one(self, text: str, max_tokens: int, is_query: bool) -> FloatArray:
        import numpy as np

        tokenizer, session = self._load(1)
        ids = tokenizer.encode(text).ids
        if len(ids) > max_tokens:
            ids = [*ids[: max_tokens - 1], ids[-1]]
        if is_query and len(ids) >= _LONG_TOKENS and self._queries == 1:
            _, session = self._load(self._threads)
        inputs = np.array([ids], dtype=np.int64)
        output: FloatArray = session.run(None, {"input_ids": inputs, "attention_mask": np.ones_like(inputs)})[0][0]
        if len(output) != self.dimension:
            raise DimensionError(
                f"model {self.model_id} returned a vector of {len(output)} numbers instead of {self.dimension}",
                hint=f"correct `dimension` in {self.manifest.folder / 'manifest.json'}",
            )
        return output

    def _load(self, threads: int) -> tuple[Any, Any]:
        """Return the tokenizer and a session with this number of threads. Both are loaded at first use."""
        loaded = self._loaded.get(threads)
        if loaded is None:
            with self._load_lock:
                loaded = self._loaded.get(threads) or load_model(self.manifest, threads)
                self._loaded[threads] = loaded
        return loaded


def load_model(manifest: Manifest, threads: int) -> tuple[Any, Any]:
    """Return the tokenizer and the session of a model."""
    # ONNX Runtime reports its use to its maker and keeps a device id, unless this is set before its first import.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
        from tokenizers import Tokenizer

        manifest.verify()
        tokenizer = Tokenizer.from_file(str(manifest.folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(max(manifest.max_tokens, manifest.query_max_tokens))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads wait for one another by spinning while a text is embedded, which is fastest, but not after that.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        model = str(manifest.folder / "model.onnx")
        return tokenizer, onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except EmbedderError:
        raise
    except Exception as error:
        raise EmbedderError(
            f"the model in {manifest.folder} cannot be loaded: {error}",
            hint="reinstall toolscout, or run `toolscout doctor`",
        ) from error
