"""From the rows of a SQLite file to a snapshot in memory, in one read transaction."""

from __future__ import annotations

import sqlite3

import numpy as np

from toolscout.errors import DimensionError
from toolscout.ports import Predicate
from toolscout.settings import Settings
from toolscout.storage import rows
from toolscout.storage.index.snapshot import Snapshot
from toolscout.storage.index.vectors import Vectors
from toolscout.storage.index.words import Words

_QUERY = """
    SELECT t.tenant, t.key, t.owner, t.server, s.enabled, t.facets, t.definition, t.terms, v.vector
    FROM tools t
    LEFT JOIN switches s ON s.tenant = t.tenant AND s.key = t.key
    LEFT JOIN vectors v ON v.model_id = ? AND v.text_hash = t.text_hash
    ORDER BY t.key, t.tenant, t.owner
"""


def load_snapshot(db: sqlite3.Connection, predicate: Predicate, settings: Settings, where: str) -> Snapshot:
    """Read the visible generation; every row belongs to it, as one transaction sees one state of the file."""
    db.execute("BEGIN")
    try:
        generation, model_id = db.execute("SELECT generation, model_id FROM catalogue").fetchone()
        found = db.execute(_QUERY, (model_id,)).fetchall()
    finally:
        db.execute("COMMIT")
    return Snapshot(
        generation=generation,
        model_id=model_id,
        facets=[rows.read_facets(*row[:6]) for row in found],
        definitions=[row[6] for row in found],
        words=Words([row[7] for row in found]),
        vectors=Vectors(_matrix([row[8] for row in found], model_id, where), exact_rows=settings.exact_rows),
        predicate=predicate,
    )


def _matrix(blobs: list[bytes | None], model_id: str, where: str) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    lengths = {len(blob) for blob in blobs if blob is not None}
    if len(lengths) > 1:
        raise DimensionError(
            f"{where} holds vectors of {sorted(length // 2 for length in lengths)} numbers for {model_id}",
            hint="two models share one name; give the new one another id and run `toolscout index` again",
        )
    size = lengths.pop() if lengths else 0
    empty = bytes(size)
    joined = np.frombuffer(b"".join(blob if blob is not None else empty for blob in blobs), dtype="<f2")
    return joined.astype(np.float32).reshape(len(blobs), size // 2)
