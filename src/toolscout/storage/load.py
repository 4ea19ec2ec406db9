"""From the rows of a SQLite file to a segment in memory, in one read transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toolscout.errors import DimensionError
from toolscout.models import Scope
from toolscout.settings import Settings
from toolscout.storage import rows
from toolscout.storage.index.segment import Segment
from toolscout.storage.index.vectors import Vectors
from toolscout.storage.index.words import Words

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_QUERY = """
    SELECT t.tenant, t.key, t.owner, t.server, s.enabled, t.facets, t.definition, t.terms, v.vector
    FROM tools t
    LEFT JOIN switches s ON s.tenant = t.tenant AND s.owner = t.owner AND s.key = t.key
    LEFT JOIN vectors v ON v.model_id = ? AND v.text_hash = t.text_hash
    WHERE t.tenant = ? AND t.owner = ?
    ORDER BY t.key
"""
_GENERATION = """
    SELECT c.model_id, coalesce(s.generation, 0)
    FROM catalogue c LEFT JOIN scopes s ON s.tenant = ? AND s.owner = ?
"""


def load_segment(db: sqlite3.Connection, scope: Scope, settings: Settings, where: str) -> Segment:
    """Read the visible generation of a scope: one transaction sees one state of the file."""
    whose = (scope.tenant, scope.owner or "")
    db.execute("BEGIN")
    try:
        model_id, generation = db.execute(_GENERATION, whose).fetchone()
        found = db.execute(_QUERY, (model_id, *whose)).fetchall()
    finally:
        db.execute("COMMIT")
    return build_segment(
        found, scope=scope, generation=generation, model_id=model_id, exact_rows=settings.exact_rows, where=where
    )


def build_segment(
    found: Sequence[Sequence[Any]], *, scope: Scope, generation: int, model_id: str, exact_rows: int, where: str
) -> Segment:
    """Put rows of (tenant, key, owner, server, switch, facets, definition, terms, vector) together, in their order."""
    return Segment(
        scope=scope,
        generation=generation,
        model_id=model_id,
        facets=[rows.read_facets(*row[:6]) for row in found],
        definitions=[row[6] for row in found],
        words=Words([row[7] for row in found]),
        vectors=Vectors(_matrix([row[8] for row in found], model_id, where), exact_rows=exact_rows),
    )


def _matrix(blobs: Sequence[bytes | None], model_id: str, where: str) -> FloatArray:
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
