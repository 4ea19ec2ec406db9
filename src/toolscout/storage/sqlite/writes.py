"""Changes of the SQLite file. Each function is one transaction and runs in the store's thread."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolscout.errors import DimensionError, ToolNotFoundError
from toolscout.models import Publication, Record, Retention, Scope
from toolscout.storage.columns import scope_columns, write_definition, write_facets

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_PUT_SERVER = """
    INSERT INTO servers VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET title = excluded.title, trusted = excluded.trusted
"""
_PUT_TOOL = """
    INSERT OR REPLACE INTO tools
    SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, generation FROM catalogue
"""
_PUT_SWITCH = "INSERT OR REPLACE INTO switches SELECT ?, ?, ?, ?, generation FROM catalogue"
_NEXT = "UPDATE catalogue SET generation = generation + 1"
_SHOW = "INSERT OR REPLACE INTO scopes SELECT ?, ?, generation FROM catalogue"
_SHOW_ALL = "UPDATE scopes SET generation = (SELECT generation FROM catalogue)"
_KEEP_PINS = """
    DELETE FROM gone_pins AS g WHERE EXISTS (
        SELECT 1 FROM tools t WHERE t.tenant = g.tenant AND t.owner = g.owner AND t.key = g.name)
"""
_MARK_PINS = """
    INSERT OR IGNORE INTO gone_pins SELECT tenant, owner, name, ? FROM records r
    WHERE kind = 'pin' AND json_extract(body, '$.verdict') = 'seen' AND NOT EXISTS (
        SELECT 1 FROM tools t WHERE t.tenant = r.tenant AND t.owner = r.owner AND t.key = r.name)
"""
_DELETE_PINS = """
    DELETE FROM records
    WHERE kind = 'pin' AND json_extract(body, '$.verdict') = 'seen' AND (tenant, owner, name) IN (
        SELECT tenant, owner, name FROM (
            SELECT *, row_number() OVER (
                PARTITION BY tenant, owner, substr(name, 1, instr(name, '__')) ORDER BY since, name) AS place
            FROM gone_pins)
        WHERE since <= ? OR since <= ? AND place > ?)
"""
_UNMARK_PINS = """
    DELETE FROM gone_pins WHERE (tenant, owner, name) NOT IN (
        SELECT tenant, owner, name FROM records WHERE kind = 'pin')
"""
_CLOCK_AHEAD_S = 300.0
_LEASE = """
    INSERT INTO leases VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE holder = excluded.holder OR until <= ? OR until > ?
"""


def add_vectors(
    db: sqlite3.Connection, model_id: str, text_hashes: Sequence[str], vectors: FloatArray, where: str
) -> None:
    """Store vectors in half precision. Refuse vectors of another length than the model's."""
    halves = vectors.astype("<f2")
    now = time.time()
    same_model = "SELECT length(vector) FROM vectors WHERE model_id = ? LIMIT 1"
    rows = (
        (model_id, bytes.fromhex(text_hash), vector.tobytes(), now)
        for text_hash, vector in zip(text_hashes, halves, strict=True)
    )
    with _transaction(db):
        row = db.execute(same_model, (model_id,)).fetchone()
        if row and row[0] != halves.shape[1] * halves.itemsize:
            raise DimensionError.two_models(
                f"{where} holds vectors of {row[0] // halves.itemsize} numbers for {model_id}, "
                f"the new ones have {halves.shape[1]}"
            )
        db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?)", rows)


def publish(db: sqlite3.Connection, publication: Publication) -> int:
    """Replace whole servers of a scope and return the new generation."""
    from toolscout.storage.index.postings import pack_terms

    owner = scope_columns(publication.scope)
    rows = [
        (
            *owner,
            entry.tool.key,
            entry.tool.server,
            entry.stamp,
            bytes.fromhex(entry.text_hash),
            pack_terms(entry.terms),
            write_facets(entry),
            write_definition(entry.tool),
        )
        for entry in publication.entries
    ]
    stay = {*publication.unchanged_keys, *(entry.tool.key for entry in publication.entries)}
    with _transaction(db):
        db.execute(_NEXT)
        for server in publication.servers:
            db.execute(_PUT_SERVER, (*owner, server.key, server.title, server.trusted))
            query = "SELECT key FROM tools WHERE tenant = ? AND owner = ? AND server = ?"
            present = db.execute(query, (*owner, server.key)).fetchall()
            gone = [(*owner, key) for (key,) in present if key not in stay]
            db.executemany("DELETE FROM tools WHERE tenant = ? AND owner = ? AND key = ?", gone)
        db.executemany(_PUT_TOOL, rows)
        switches = [(*owner, key, enabled) for key, enabled in publication.switches.items()]
        db.executemany(_PUT_SWITCH, switches)
        db.execute(_KEEP_PINS)
        db.execute("UPDATE catalogue SET model_id = ?", (publication.model_id,))
        db.execute(_SHOW, owner)
        if publication.everywhere:
            db.execute(_SHOW_ALL)
        return int(db.execute("SELECT generation FROM catalogue").fetchone()[0])


def remove(db: sqlite3.Connection, scope: Scope, server: str | None = None) -> int:
    """Remove one server of a scope, or all of them. Return how many tools were removed."""
    owner = scope_columns(scope)
    count = "SELECT count(*) FROM tools WHERE tenant = ? AND owner = ?"
    with _transaction(db):
        before = db.execute(count, owner).fetchone()[0]
        if server is None:
            db.execute("DELETE FROM servers WHERE tenant = ? AND owner = ?", owner)
            db.execute("DELETE FROM switches WHERE tenant = ? AND owner = ?", owner)
            db.execute("DELETE FROM records WHERE tenant = ? AND owner = ?", owner)
        else:
            db.execute("DELETE FROM servers WHERE tenant = ? AND owner = ? AND key = ?", (*owner, server))
        db.execute(_NEXT)
        db.execute(_SHOW, owner)
        return int(before - db.execute(count, owner).fetchone()[0])


def clean_up(db: sqlite3.Connection, retention: Retention) -> None:
    """Delete the vectors and pins of tools that are long gone."""
    now = time.time()
    with _transaction(db):
        db.execute(
            "DELETE FROM vectors WHERE added_at <= ? AND text_hash NOT IN (SELECT text_hash FROM tools)",
            (now - retention.vectors_s,),
        )
        db.execute(_KEEP_PINS)
        db.execute(_MARK_PINS, (now,))
        db.execute(_DELETE_PINS, (now - retention.pins_s, now - retention.settled_s, retention.pins_most))
        db.execute(_UNMARK_PINS)


def set_enabled(db: sqlite3.Connection, scope: Scope, keys: Sequence[str], enabled: bool) -> None:
    """Enable or disable published tools, all or none of them."""
    owner = scope_columns(scope)
    published = "SELECT 1 FROM tools WHERE tenant = ? AND owner = ? AND key = ?"
    with _transaction(db):
        for key in keys:
            if not db.execute(published, (*owner, key)).fetchone():
                raise ToolNotFoundError(f"no tool has the key {key!r}", hint="`toolscout list` shows the keys")
        db.execute(_NEXT)
        db.executemany(_PUT_SWITCH, [(*owner, key, enabled) for key in keys])
        db.execute(_SHOW, owner)


def lease(db: sqlite3.Connection, name: str, holder: str, ttl_s: float) -> bool:
    """Take a lease that is free, expired or already the holder's.

    Times are of the wall clock, which all processes of a machine share. A lease that ends far later than one that is
    taken now was taken while the clock was ahead, and is void.
    """
    now = time.time()
    with _transaction(db):
        return db.execute(_LEASE, (name, holder, now + ttl_s, now, now + ttl_s + _CLOCK_AHEAD_S)).rowcount == 1


def release(db: sqlite3.Connection, name: str, holder: str) -> None:
    """Release a lease."""
    with _transaction(db):
        db.execute("DELETE FROM leases WHERE name = ? AND holder = ?", (name, holder))


def put_records(db: sqlite3.Connection, records: Sequence[Record], *, replace: bool) -> None:
    """Store records. With `replace`, a record of the same kind, scope and name is replaced, else it stays."""
    verb = "INSERT OR REPLACE" if replace else "INSERT OR IGNORE"
    rows = [
        (item.kind, *scope_columns(item.scope), item.name, json.dumps(item.body, ensure_ascii=True)) for item in records
    ]
    with _transaction(db):
        db.executemany(f"{verb} INTO records VALUES (?, ?, ?, ?, ?)", rows)


def remove_record(db: sqlite3.Connection, kind: str, scope: Scope, name: str) -> None:
    """Remove one record."""
    values = (kind, *scope_columns(scope), name)
    with _transaction(db):
        db.execute("DELETE FROM records WHERE kind = ? AND tenant = ? AND owner = ? AND name = ?", values)


class _transaction:  # noqa: N801 - used as a keyword
    """One transaction. `BEGIN IMMEDIATE` waits for another writer at the start instead of failing half-way."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:  # after a disk error SQLite has rolled back already
                self._connection.execute("ROLLBACK")
