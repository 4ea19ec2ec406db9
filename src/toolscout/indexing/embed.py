"""The embed stage: vectors for documents that have none yet, stored in chunks, so that a killed run can resume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolscout.errors import DimensionError, EmbedderError
from toolscout.indexing.enrich import text_hash, to_document
from toolscout.indexing.prepare import PreparedServer
from toolscout.ports import Embedder, Progress, Store

_CHUNK = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """How many vectors were made, how many are still missing, and which model the next generation uses.

    `repaired` says that some tools of any tenant, already published, had no vector before.
    """

    made: int
    missing: int
    model_id: str
    repaired: bool = False


async def embed_missing(
    store: Store, embedder: Embedder | None, prepared: Sequence[PreparedServer], current: str, progress: Progress | None
) -> Embedded:
    """Embed what is new, and what an earlier failure or a change of the model left without a vector.

    When the embedder is down, tools can be found by words, and the model of the `current` generation stays. Vectors of
    a wrong length are never accepted.
    """
    if embedder is None:
        return Embedded(made=0, missing=0, model_id=current)
    unembedded = map(to_document, await store.unembedded(embedder.model_id))
    documents = {text_hash(document): document for document in unembedded}
    repaired = bool(documents)
    documents |= {entry.text_hash: entry.document for part in prepared for entry in part.entries}
    missing = sorted(await store.missing_vectors(embedder.model_id, list(documents)))
    made = 0

    def report(count: int, _: int) -> None:
        if progress:
            progress(made + count, len(missing))

    for start in range(0, len(missing), _CHUNK):
        chunk = missing[start : start + _CHUNK]
        try:
            vectors = await embedder.embed_documents([documents[item] for item in chunk], report)
        except DimensionError:
            raise
        except EmbedderError:
            rest = len(missing) - made
            return Embedded(made=made, missing=rest, model_id=current or embedder.model_id, repaired=repaired)
        await store.add_vectors(embedder.model_id, chunk, vectors)
        made += len(chunk)
    return Embedded(made=made, missing=0, model_id=embedder.model_id, repaired=repaired)
