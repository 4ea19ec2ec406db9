"""What changes the database: each function is the whole of one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psycopg import AsyncConnection

from toolscout.errors import DimensionError, ToolNotFoundError
from toolscout.models import Entry, Publication, Scope
from toolscout.storage.postgres import search_rows
from toolscout.storage.postgres.encoding import copied
from toolscout.storage.postgres.pool import fetch_all, fetch_one
from toolscout.storage.postgres.reads import whose
from toolscout.storage.tool_json import write_definition, write_facets

if TYPE_CHECKING:
    from toolscout.models import FloatArray

CHANNEL = "toolscout"
_CHUNK = 1_000
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('toolscout:everywhere', 0))"
_BESIDE = "SELECT pg_advisory_xact_lock_shared(hashtextextended('toolscout:everywhere', 0))"
"""What writes to every tenant runs alone: it wants rows in another order than those that write to one."""

_NEW_MODEL = """
    INSERT INTO models (model_id, dimension)
    SELECT %s, %s WHERE NOT EXISTS (SELECT 1 FROM models WHERE model_id = %s) ON CONFLICT DO NOTHING
"""
"""A conflict alone would use up a number at every call, of which there are 32,767."""

_PUT_SERVERS = """
    INSERT INTO servers SELECT %s, %s, * FROM unnest(%s::text[], %s::bytea[], %s::boolean[])
    ON CONFLICT (tenant, owner, key) DO UPDATE SET title = excluded.title, trusted = excluded.trusted
    WHERE (servers.title, servers.trusted) IS DISTINCT FROM (excluded.title, excluded.trusted)
"""
_PUT_TOOLS = """
    INSERT INTO tools SELECT %s, %s, * FROM
        unnest(%b::text[], %b::text[], %b::text[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[])
    ON CONFLICT (tenant, owner, key) DO UPDATE SET (server, stamp, text_hash, terms, facets, definition) =
        (excluded.server, excluded.stamp, excluded.text_hash, excluded.terms, excluded.facets, excluded.definition)
"""
_PUT_SWITCHES = """
    INSERT INTO switches SELECT %s, %s, * FROM unnest(%s::text[], %s::boolean[])
    ON CONFLICT (tenant, owner, key) DO UPDATE SET enabled = excluded.enabled
"""
_GONE = """
    SELECT t.key FROM tools t WHERE t.tenant = %s AND t.owner = %s AND t.server = ANY (%s)
    AND NOT EXISTS (SELECT 1 FROM unnest(%s::text[]) k (key) WHERE k.key = t.key)
"""
_SHOW = "UPDATE scopes SET generation = nextval('numbers') WHERE tenant = %s AND owner = %s RETURNING generation"
_TOUCH = "INSERT INTO scopes VALUES (%s, %s) ON CONFLICT (tenant, owner) DO UPDATE SET changed_at = now()"


async def add_vectors(
    db: AsyncConnection, model_id: str, text_hashes: Sequence[str], vectors: FloatArray, where: str
) -> None:
    """Keep vectors, as half-precision numbers; those of another length than the model's are refused."""
    dimension = vectors.shape[1]
    await db.execute(_NEW_MODEL, (model_id, dimension, model_id))
    known = await fetch_one(db, "SELECT model, dimension FROM models WHERE model_id = %s", (model_id,))
    if known[1] != dimension:
        raise DimensionError.two_models(
            f"{where} holds vectors of {known[1]} numbers for {model_id}, the new ones have {dimension}"
        )
    await db.execute("CREATE TEMP TABLE incoming (text_hash bytea, vector halfvec) ON COMMIT DROP")
    async with db.cursor() as cursor, cursor.copy("COPY incoming FROM STDIN (FORMAT BINARY)") as copy:
        await copy.write(await asyncio.to_thread(copied, text_hashes, vectors))
    # No conflict target: naming one would ask the wall whether the other row may be seen.
    await db.execute(
        "INSERT INTO vectors (model, text_hash, vector) SELECT %s, text_hash, vector FROM incoming "
        "ORDER BY text_hash ON CONFLICT DO NOTHING",
        (known[0],),
    )


async def publish(db: AsyncConnection, publication: Publication, resident_tools: int) -> int:
    """Replace whole servers of a scope, make it visible, and return the new generation."""
    scope = publication.scope
    large = await _begin(db, scope, alone=publication.everywhere)
    servers = publication.servers
    names = [server.key for server in servers]
    await db.execute(
        _PUT_SERVERS,
        (
            *whose(scope),
            names,
            [server.title.encode("utf-8", "surrogatepass") for server in servers],
            [server.trusted for server in servers],
        ),
    )
    keep = [*publication.unchanged_keys, *(entry.tool.key for entry in publication.entries)]
    gone = [row[0] for row in await fetch_all(db, _GONE, (*whose(scope), names, keep))]
    touched = [*gone, *dict.fromkeys((*(entry.tool.key for entry in publication.entries), *publication.switches))]
    if large:
        await search_rows.tally(db, scope, touched, -1)
    await db.execute("DELETE FROM tools WHERE tenant = %s AND owner = %s AND key = ANY (%s)", (*whose(scope), gone))
    for start in range(0, len(publication.entries), _CHUNK):
        columns = await asyncio.to_thread(_columns, publication.entries[start : start + _CHUNK])
        await db.execute(_PUT_TOOLS, (*whose(scope), *columns))
    await db.execute(_PUT_SWITCHES, (*whose(scope), [*publication.switches], [*publication.switches.values()]))
    changed = await db.execute(
        "UPDATE catalogue SET model_id = %s WHERE model_id <> %s", (publication.model_id, publication.model_id)
    )
    await search_rows.follow(db, scope, touched if large else None, resident_tools)
    if publication.everywhere or changed.rowcount:
        await db.execute("SELECT revector_everything()")
    if publication.everywhere:
        await db.execute("SELECT show_everywhere()")
    return await _show(db, scope)


async def take_out(db: AsyncConnection, scope: Scope, server: str | None, resident_tools: int) -> int:
    """Take one server of a scope out, or all that a user added; return how many tools went."""
    large = await _begin(db, scope)
    which, values = ("", whose(scope)) if server is None else (" AND server = %s", (*whose(scope), server))
    query = f"SELECT key FROM tools WHERE tenant = %s AND owner = %s{which}"  # noqa: S608 - our own condition
    gone = [row[0] for row in await fetch_all(db, query, values)]
    if large:
        await search_rows.tally(db, scope, gone, -1)
    if server is None:
        for table in ("servers", "switches", "records"):
            await db.execute(f"DELETE FROM {table} WHERE tenant = %s AND owner = %s", values)  # noqa: S608 - our own names
    else:
        await db.execute("DELETE FROM servers WHERE tenant = %s AND owner = %s AND key = %s", values)
    await search_rows.follow(db, scope, [] if large else None, resident_tools)
    await _show(db, scope)
    return len(gone)


async def switch(db: AsyncConnection, scope: Scope, key: str, enabled: bool) -> None:
    """Switch one published tool on or off."""
    large = await _begin(db, scope)
    known = "SELECT facets FROM tools WHERE tenant = %s AND owner = %s AND key = %s"
    found = await (await db.execute(known, (*whose(scope), key))).fetchone()
    if not found:
        raise ToolNotFoundError(f"no tool has the key {key!r}", hint="`toolscout list` shows the keys")
    if large:
        await search_rows.tally(db, scope, [key], -1)
    await db.execute(_PUT_SWITCHES, (*whose(scope), [key], [enabled]))
    if large:
        query = "UPDATE search_rows SET enabled = %s WHERE tenant = %s AND owner = %s AND key = %s"
        await db.execute(query, (enabled and not search_rows.held_in(found[0]), *whose(scope), key))
        await search_rows.tally(db, scope, [key], 1)
    await _show(db, scope)


async def _begin(db: AsyncConnection, scope: Scope, *, alone: bool = False) -> bool:
    """Let publishers of one tenant, or of all, take turns; tell whether the tenant is searched in the database."""
    await db.execute(_ALONE if alone else _BESIDE)
    await db.execute("INSERT INTO tenants (tenant) VALUES (%s) ON CONFLICT DO NOTHING", (scope.tenant,))
    locked = "SELECT in_database FROM tenants WHERE tenant = %s FOR NO KEY UPDATE"
    (in_database,) = await fetch_one(db, locked, (scope.tenant,))
    await db.execute(_TOUCH, whose(scope))
    return bool(in_database)


async def _show(db: AsyncConnection, scope: Scope) -> int:
    """Give the scope its next generation, as the last thing, and tell whoever listens once this is committed."""
    (generation,) = await fetch_one(db, _SHOW, whose(scope))
    await db.execute("SELECT pg_notify(%s, '')", (CHANNEL,))
    return int(generation)


def _columns(entries: Sequence[Entry]) -> tuple[list[Any], ...]:
    from toolscout.storage.index.postings import pack

    return (
        [entry.tool.key for entry in entries],
        [entry.tool.server for entry in entries],
        [entry.stamp for entry in entries],
        [bytes.fromhex(entry.text_hash) for entry in entries],
        [pack(entry.terms) for entry in entries],
        [write_facets(entry).encode("utf-8", "surrogatepass") for entry in entries],
        [write_definition(entry.tool) for entry in entries],
    )
