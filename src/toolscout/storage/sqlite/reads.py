"""Queries on the SQLite file, run in the store's thread. Searches read segments in memory instead."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from toolscout.models import Record, Scope, Server, Tool
from toolscout.storage.columns import read_facets, read_tool, scope_columns

if TYPE_CHECKING:
    from toolscout.models import FloatArray
    from toolscout.storage.index.segment import Segment

_CHUNK = 500
_UNEMBEDDED = """
    SELECT tenant, key, owner, server, NULL, facets, definition FROM tools
    WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = ? AND v.text_hash = tools.text_hash)
"""
_STORED = """
    SELECT tenant, key, owner, server, NULL, facets, definition FROM tools
    WHERE tenant = ? AND owner = ? ORDER BY key
"""

_SEGMENT = """
    SELECT t.tenant, t.key, t.owner, t.server, s.enabled, t.facets, t.definition, t.terms, v.vector
    FROM tools t
    LEFT JOIN switches s ON s.tenant = t.tenant AND s.owner = t.owner AND s.key = t.key
    LEFT JOIN vectors v ON v.model_id = ? AND v.text_hash = t.text_hash
    WHERE t.tenant = ? AND t.owner = ? {}
    ORDER BY t.key
"""
_CHANGED = """
    SELECT key FROM tools WHERE tenant = ?1 AND owner = ?2 AND generation > ?3
    UNION SELECT key FROM switches WHERE tenant = ?1 AND owner = ?2 AND generation > ?3
"""
_EMBEDDED = """
    SELECT t.key FROM tools t JOIN vectors v ON v.model_id = ? AND v.text_hash = t.text_hash
    WHERE t.tenant = ? AND t.owner = ?
"""
_GENERATION = """
    SELECT c.model_id, coalesce(s.generation, 0)
    FROM catalogue c LEFT JOIN scopes s ON s.tenant = ? AND s.owner = ?
"""


def generations(db: sqlite3.Connection) -> dict[Scope, tuple[int, str]]:
    """Return the generation and the model of every scope, sorted by name."""
    query = "SELECT s.tenant, s.owner, s.generation, c.model_id FROM scopes s, catalogue c ORDER BY 1, 2"
    return {Scope(tenant=row[0], owner=row[1] or None): (row[2], row[3]) for row in db.execute(query)}


def stamps(db: sqlite3.Connection, scope: Scope, server: str) -> dict[str, str]:
    """Return the stamp of each published tool of a server, by key."""
    query = "SELECT key, stamp FROM tools WHERE tenant = ? AND owner = ? AND server = ?"
    return dict(db.execute(query, (*scope_columns(scope), server)).fetchall())


def servers(db: sqlite3.Connection, scope: Scope) -> list[Server]:
    """Return the servers of a scope."""
    query = "SELECT key, title, trusted FROM servers WHERE tenant = ? AND owner = ? ORDER BY key"
    rows = db.execute(query, scope_columns(scope)).fetchall()
    return [Server(key=key, title=title, trusted=bool(trusted)) for key, title, trusted in rows]


def switches(db: sqlite3.Connection, scope: Scope) -> dict[str, bool]:
    """Return which tools were enabled or disabled by an operator, by key."""
    query = "SELECT key, enabled FROM switches WHERE tenant = ? AND owner = ? ORDER BY key"
    return {key: bool(enabled) for key, enabled in db.execute(query, scope_columns(scope))}


def stored_tools(db: sqlite3.Connection, scope: Scope) -> list[Tool]:
    """Return all tools of a scope as they were published."""
    return [_tool(row) for row in db.execute(_STORED, scope_columns(scope))]


def unembedded(db: sqlite3.Connection, model_id: str) -> list[Tool]:
    """Return the published tools whose text has no vector of this model."""
    return [_tool(row) for row in db.execute(_UNEMBEDDED, (model_id,))]


def missing_vectors(db: sqlite3.Connection, model_id: str, text_hashes: Sequence[str]) -> set[str]:
    """Return the hashes of the texts that have no vector of this model."""
    return {*text_hashes} - {text_hash for text_hash, _ in _vectors(db, "text_hash, NULL", model_id, text_hashes)}


def vectors(db: sqlite3.Connection, model_id: str, text_hashes: Sequence[str]) -> dict[str, FloatArray]:
    """Return the stored vectors of these texts, by text hash."""
    import numpy as np

    rows = _vectors(db, "text_hash, vector", model_id, text_hashes)
    return {text_hash: np.frombuffer(blob, dtype="<f2").astype(np.float32) for text_hash, blob in rows}


def records(db: sqlite3.Connection, kind: str, scope: Scope | None, name: str, *, prefix: bool) -> list[Record]:
    """Return the records of a kind with this name, or with names that have it as prefix."""
    query = "SELECT tenant, owner, name, body FROM records WHERE kind = ? AND name >= ? AND name <= ?"
    values = [kind, name, name + "\U0010ffff" if prefix else name]
    if scope is not None:
        query += " AND tenant = ? AND owner = ?"
        values += scope_columns(scope)
    return [
        Record(kind=kind, scope=Scope(tenant=tenant, owner=owner or None), name=record_name, body=json.loads(body))
        for tenant, owner, record_name, body in db.execute(f"{query} ORDER BY name, tenant, owner", values)
    ]


def load_segment(
    db: sqlite3.Connection, scope: Scope, exact_rows: int, where: str, loaded: Segment | None = None
) -> Segment:
    """Read the visible generation of a scope in one transaction, so that it is one state of the file.

    Of a scope that is `loaded`, only the tools are read that changed since, unless they are many.
    """
    from toolscout.storage.index.segment import Segment

    db.execute("BEGIN")
    try:
        model_id, generation = db.execute(_GENERATION, scope_columns(scope)).fetchone()
        if loaded is not None and loaded.model_id == model_id:
            keys, changed = _keys(db, scope), _changed_keys(db, scope, loaded)
            if loaded.can_replace(keys, changed):
                rows = _rows(db, model_id, scope, sorted(changed))
                return loaded.with_changes(keys, rows, generation=generation, where=where)
        rows = db.execute(_SEGMENT.format(""), (model_id, *scope_columns(scope))).fetchall()
    finally:
        db.execute("COMMIT")
    return Segment.from_rows(
        rows, scope=scope, generation=generation, model_id=model_id, exact_rows=exact_rows, where=where
    )


def _keys(db: sqlite3.Connection, scope: Scope) -> list[str]:
    query = "SELECT key FROM tools WHERE tenant = ? AND owner = ? ORDER BY key"
    return [key for (key,) in db.execute(query, scope_columns(scope))]


def _changed_keys(db: sqlite3.Connection, scope: Scope, loaded: Segment) -> set[str]:
    """Return the keys of the tools that were written or switched since, or that have a vector now."""
    owner = scope_columns(scope)
    changed = {key for (key,) in db.execute(_CHANGED, (*owner, loaded.generation))}
    if without := loaded.keys_without_vector():
        changed |= without.intersection(key for (key,) in db.execute(_EMBEDDED, (loaded.model_id, *owner)))
    return changed


def _rows(db: sqlite3.Connection, model_id: str, scope: Scope, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for start in range(0, len(keys), _CHUNK):
        chunk = keys[start : start + _CHUNK]
        query = _SEGMENT.format(f"AND t.key IN ({','.join('?' * len(chunk))})")
        rows += db.execute(query, (model_id, *scope_columns(scope), *chunk))
    return rows


def _vectors(
    db: sqlite3.Connection, columns: str, model_id: str, text_hashes: Sequence[str]
) -> Iterator[tuple[str, bytes]]:
    for start in range(0, len(text_hashes), _CHUNK):
        chunk = [bytes.fromhex(item) for item in text_hashes[start : start + _CHUNK]]
        marks = ",".join("?" * len(chunk))
        query = f"SELECT {columns} FROM vectors WHERE model_id = ? AND text_hash IN ({marks})"  # noqa: S608 - marks only
        for text_hash, blob in db.execute(query, (model_id, *chunk)):
            yield text_hash.hex(), blob


def _tool(row: Sequence[object]) -> Tool:
    return read_tool(read_facets(*row[:6]), row[6])  # type: ignore[arg-type]
