"""Vectors for documents that have none yet: content-addressed, in chunks, so that a killed run resumes where it was."""

from __future__ import annotations

from collections.abc import Mapping

from toolscout.errors import DimensionError, EmbedderError
from toolscout.models import Document
from toolscout.ports import Embedder, Progress, Store

_CHUNK = 2_048


async def embed_missing(
    store: Store, embedder: Embedder, documents: Mapping[str, Document], progress: Progress | None = None
) -> tuple[int, int, EmbedderError | None]:
    """Embed what has no vector; return how many were made, how many still miss one, and why.

    An embedder that is down leaves the tools findable by words; vectors of a wrong length are never accepted.
    """
    missing = sorted(await store.missing_vectors(embedder.model_id, list(documents)))
    done = 0

    def report(count: int, _: int) -> None:
        if progress:
            progress(done + count, len(missing))

    for start in range(0, len(missing), _CHUNK):
        chunk = missing[start : start + _CHUNK]
        try:
            vectors = await embedder.embed_documents([documents[item] for item in chunk], report)
        except DimensionError:
            raise
        except EmbedderError as error:
            return done, len(missing) - done, error
        await store.add_vectors(embedder.model_id, chunk, vectors)
        done += len(chunk)
    return done, 0, None
