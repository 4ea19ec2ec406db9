"""Any OpenAI-compatible `/embeddings` endpoint, with `toolscout[openai]` installed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolscout.errors import DimensionError, EmbedderError
from toolscout.models import Document
from toolscout.ports import Progress

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_CHUNK = 128
_VECTOR_BYTES = 262_144
"""How long a vector may be as JSON: that of 10,000 numbers."""

_REST_BYTES = 65_536


class _TooLongError(Exception):
    """The answer is longer than any answer to the request can be."""


class OpenAIEmbedder:
    """An embedder that sends texts to a remote endpoint. Its only state is the connection pool."""

    def __init__(self, name: str, *, url: str, token: str, dimension: int = 0, timeout_s: float = 10.0) -> None:
        """Take the name of the model and its endpoint. Nothing is sent yet."""
        self._name = name
        self._url = url.rstrip("/")
        self._token = token.strip()
        self._dimension = dimension
        self._timeout_s = timeout_s
        self._client: Any = None

    @property
    def model_id(self) -> str:
        """Name the model."""
        return f"openai:{self._name}" + (f":{self._dimension}" if self._dimension else "")

    @property
    def dimension(self) -> int:
        """Return the length of a vector, or 0 if it is not set."""
        return self._dimension

    async def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        """Return one unit vector for each query."""
        return await self._embed_all(texts)

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> FloatArray:
        """Return one unit vector for each document. Each request has at most 128."""
        return await self._embed_all([document.text() for document in documents], progress)

    async def _embed_all(self, texts: Sequence[str], progress: Progress | None = None) -> FloatArray:
        import numpy as np

        parts = []
        for start in range(0, len(texts), _CHUNK):
            chunk = list(texts[start : start + _CHUNK])
            parts.append(np.asarray(await self._request(chunk), dtype=np.float32))
            if progress:
                progress(start + len(chunk), len(texts))
        vectors = np.concatenate(parts) if parts else np.empty((0, self._dimension), dtype=np.float32)
        unit: FloatArray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return unit

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _request(self, texts: list[str]) -> list[list[float]]:
        body: dict[str, Any] = {"model": self._name, "input": texts, "encoding_format": "float"}
        if self._dimension:
            body["dimensions"] = self._dimension
        client = self._connect()
        try:
            async with asyncio.timeout(self._timeout_s):
                async with client.stream(
                    "POST", f"{self._url}/embeddings", json=body, headers=self._headers()
                ) as response:
                    response.raise_for_status()
                    answer = await _read(response, _REST_BYTES + len(texts) * _VECTOR_BYTES)
            rows = sorted(json.loads(answer)["data"], key=lambda row: row["index"])
            indexes = [row["index"] for row in rows]
            vectors = [list(map(float, row["embedding"])) for row in rows]
        except Exception as error:  # noqa: BLE001 - for the user, every failure means that there is no answer
            # The cause may quote a header and so the key, which must not appear in a traceback.
            raise EmbedderError(
                f"the embeddings endpoint {self._url} did not answer for {self._name}: {_reason(error)}",
                hint="check TOOLSCOUT_EMBEDDER_URL and TOOLSCOUT_EMBEDDER_KEY",
            ) from None
        lengths = {len(vector) for vector in vectors}
        complete = indexes == list(range(len(texts)))
        if not complete or len(lengths) != 1 or (self._dimension and lengths != {self._dimension}):
            raise DimensionError(
                f"{self._name} returned {len(vectors)} vectors of {sorted(lengths)} numbers for {len(texts)} texts",
                hint="set TOOLSCOUT_EMBEDDER_DIMENSION to the length of the model's vectors",
            )
        return vectors

    def _connect(self) -> Any:
        if self._client is None:
            try:
                import httpx2
            except ImportError as error:
                raise EmbedderError("httpx2 is not installed", hint="pip install 'toolscout[openai]'") from error
            self._client = httpx2.AsyncClient(timeout=self._timeout_s)
        return self._client

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}


async def _read(response: Any, max_bytes: int) -> bytes:
    """Read a whole body, unless it is too long."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > max_bytes:
            raise _TooLongError
    return bytes(body)


def _reason(error: Exception) -> str:
    """Return the HTTP status or the type of an error, which never contain what was sent."""
    if isinstance(error, _TooLongError):
        return "its answer is too long"
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"HTTP {status}" if status else type(error).__name__
