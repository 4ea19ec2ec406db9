"""Writes the rows of many tenants directly into the tables, because publishing each tenant would take a day."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import psycopg

from benchmarks.scale.corpus import Corpus, servers_of
from toolscout.storage.columns import write_definition, write_facets
from toolscout.storage.index.postings import pack_terms
from toolscout.storage.postgres.encoding import to_halves

BLOCK = 20_000


def tenant_name(number: int) -> str:
    """Name a tenant."""
    return f"tenant-{number}"


def blocks(corpus: Corpus, size: int, tenants: int) -> Iterator[tuple[list[Any], list[Any], list[Any], Any]]:
    """Give servers, tools, text hashes and vectors, block by block; tools are dealt out to tenants in runs."""
    share = -(-size // tenants)
    for first in range(0, size, BLOCK):
        entries, vectors = corpus.block(first, min(BLOCK, size - first))
        servers, tools = {}, []
        for at, entry in enumerate(entries, start=first):
            tenant = tenant_name(at // share)
            servers[tenant, entry.tool.server] = None
            tools.append(
                (
                    tenant,
                    "",
                    entry.tool.key,
                    entry.tool.server,
                    entry.stamp,
                    bytes.fromhex(entry.text_hash),
                    pack_terms(entry.terms),
                    write_facets(entry),
                    write_definition(entry.tool),
                )
            )
        yield [(tenant, "", key, key, True) for tenant, key in servers], tools, [item[5] for item in tools], vectors


def fill_postgres(url: str, corpus: Corpus, size: int, tenants: int) -> None:
    """Fill a migrated database."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SET search_path = toolscout, public")
        with db.transaction():
            names = [tenant_name(number) for number in range(tenants)]
            db.execute("INSERT INTO tenants (tenant) SELECT unnest(%s::text[])", (names,))
            db.execute("INSERT INTO scopes SELECT unnest(%s::text[]), '', nextval('numbers')", (names,))
            db.execute("UPDATE catalogue SET model_id = %s", (corpus.model_id,))
            dimension = corpus.vectors.shape[1]
            db.execute("INSERT INTO models (model_id, dimension) VALUES (%s, %s)", (corpus.model_id, dimension))
            for servers, tools, hashes, vectors in blocks(corpus, size, tenants):
                _copy(db, "servers_in", "servers", [(*row[:3], row[3].encode(), row[4]) for row in servers])
                _copy(db, "tools_in", "tools", [(*row[:7], row[7].encode(), row[8]) for row in tools])
                sent = [(1, text, half) for text, half in zip(hashes, to_halves(vectors), strict=True)]
                with db.cursor().copy("COPY vectors (model, text_hash, vector) FROM STDIN (FORMAT BINARY)") as copy:
                    copy.set_types(["int2", "bytea", "bytea"])
                    for row in sent:
                        copy.write_row(row)
            db.execute("UPDATE scopes SET tools = (SELECT count(*) FROM tools t WHERE t.tenant = scopes.tenant)")
        db.execute("VACUUM ANALYZE")


def _copy(db: psycopg.Connection, between: str, table: str, found: list[Any]) -> None:
    """Copy rows by way of a temporary table: a server's tools may lie in two blocks."""
    db.execute(f"CREATE TEMP TABLE {between} (LIKE {table}) ON COMMIT DROP")
    with db.cursor().copy(f"COPY {between} FROM STDIN") as copy:
        for row in found:
            copy.write_row(row)
    db.execute(f"INSERT INTO {table} SELECT * FROM {between} ON CONFLICT DO NOTHING")
    db.execute(f"DROP TABLE {between}")


def fill_sqlite(path: str, corpus: Corpus, size: int, tenants: int) -> None:
    """Fill a migrated file."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN")
    for servers, tools, hashes, vectors in blocks(corpus, size, tenants):
        db.executemany("INSERT OR IGNORE INTO servers VALUES (?, ?, ?, ?, ?)", servers)
        db.executemany("INSERT INTO tools VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1)", tools)
        now = time.time()
        halves = vectors.astype("<f2")
        made = ((corpus.model_id, text, half.tobytes(), now) for text, half in zip(hashes, halves, strict=True))
        db.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", made)
    db.execute("UPDATE catalogue SET generation = 1, model_id = ?", (corpus.model_id,))
    db.executemany("INSERT INTO scopes VALUES (?, '', 1)", [(tenant_name(number),) for number in range(tenants)])
    db.execute("COMMIT")
    db.close()


def whole_servers(corpus: Corpus, first: int, count: int) -> tuple[Any, Any, Any]:
    """Return servers, entries and vectors of a run of tools, to be published."""
    entries, vectors = corpus.block(first, count)
    return servers_of(entries), tuple(entries), vectors
