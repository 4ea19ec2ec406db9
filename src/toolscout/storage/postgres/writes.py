"""Changes of the database. Each function is one whole transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from psycopg import AsyncConnection

from toolscout.errors import DimensionError, ToolNotFoundError
from toolscout.models import Entry, Publication, Retention, Scope
from toolscout.storage.columns import scope_columns, write_definition, write_facets
from toolscout.storage.index.postings import pack_terms
from toolscout.storage.postgres import search_rows
from toolscout.storage.postgres.encoding import copy_data
from toolscout.storage.postgres.pool import fetch_all, fetch_one

if TYPE_CHECKING:
    from toolscout.models import FloatArray

CHANNEL = "toolscout"
_CHUNK = 1_000
_LOCK_EXCLUSIVE = "SELECT pg_advisory_xact_lock(hashtextextended('toolscout:everywhere', 0))"
_LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtextextended('toolscout:everywhere', 0))"
"""A transaction that writes to every tenant runs alone: it locks rows in another order than the others."""

_NEW_MODEL = """
    INSERT INTO models (model_id, dimension)
    SELECT %s, %s WHERE NOT EXISTS (SELECT 1 FROM models WHERE model_id = %s) ON CONFLICT DO NOTHING
"""
"""ON CONFLICT alone would use up one of the 32,767 model numbers at every call."""

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
_KEEP_PINS = """
    DELETE FROM gone_pins g USING tools t WHERE g.tenant = %s AND g.owner = %s
    AND t.tenant = g.tenant AND t.owner = g.owner AND t.key = g.name
"""
_SHOW = "UPDATE scopes SET generation = nextval('numbers') WHERE tenant = %s AND owner = %s RETURNING generation"
_TOUCH = "INSERT INTO scopes VALUES (%s, %s) ON CONFLICT (tenant, owner) DO UPDATE SET changed_at = now()"


async def add_vectors(
    db: AsyncConnection, model_id: str, text_hashes: Sequence[str], vectors: FloatArray, where: str
) -> None:
    """Store vectors in half precision. Refuse vectors of another length than the model's."""
    dimension = vectors.shape[1]
    await db.execute(_NEW_MODEL, (model_id, dimension, model_id))
    query = "SELECT model, dimension FROM models WHERE model_id = %s"
    model, model_dimension = await fetch_one(db, query, (model_id,))
    if model_dimension != dimension:
        raise DimensionError.two_models(
            f"{where} holds vectors of {model_dimension} numbers for {model_id}, the new ones have {dimension}"
        )
    await db.execute("CREATE TEMP TABLE incoming (text_hash bytea, vector halfvec) ON COMMIT DROP")
    async with db.cursor() as cursor, cursor.copy("COPY incoming FROM STDIN (FORMAT BINARY)") as copy:
        await copy.write(await asyncio.to_thread(copy_data, text_hashes, vectors))
    # No conflict target: with one, row-level security would check whether the other row may be seen.
    await db.execute(
        "INSERT INTO vectors (model, text_hash, vector) SELECT %s, text_hash, vector FROM incoming "
        "ORDER BY text_hash ON CONFLICT DO NOTHING",
        (model,),
    )


async def publish(db: AsyncConnection, publication: Publication, resident_tools: int) -> int:
    """Replace whole servers of a scope, make it visible, and return the new generation."""
    scope = publication.scope
    in_database = await _begin(db, scope, exclusive=publication.everywhere)
    servers = publication.servers
    names = [server.key for server in servers]
    await db.execute(
        _PUT_SERVERS,
        (
            *scope_columns(scope),
            names,
            [server.title.encode("utf-8", "surrogatepass") for server in servers],
            [server.trusted for server in servers],
        ),
    )
    stay = [*publication.unchanged_keys, *(entry.tool.key for entry in publication.entries)]
    gone = [row[0] for row in await fetch_all(db, _GONE, (*scope_columns(scope), names, stay))]
    changed = [*gone, *dict.fromkeys((*(entry.tool.key for entry in publication.entries), *publication.switches))]
    if in_database:
        await search_rows.tally(db, scope, changed, -1)
    await db.execute(
        "DELETE FROM tools WHERE tenant = %s AND owner = %s AND key = ANY (%s)", (*scope_columns(scope), gone)
    )
    for start in range(0, len(publication.entries), _CHUNK):
        columns = await asyncio.to_thread(_columns, publication.entries[start : start + _CHUNK])
        await db.execute(_PUT_TOOLS, (*scope_columns(scope), *columns))
    await db.execute(_KEEP_PINS, scope_columns(scope))
    await db.execute(_PUT_SWITCHES, (*scope_columns(scope), [*publication.switches], [*publication.switches.values()]))
    model_update = await db.execute(
        "UPDATE catalogue SET model_id = %s WHERE model_id <> %s", (publication.model_id, publication.model_id)
    )
    await search_rows.update(db, scope, changed if in_database else None, resident_tools)
    if publication.everywhere or model_update.rowcount:
        await db.execute("SELECT revector_everything()")
    if publication.everywhere:
        await db.execute("SELECT show_everywhere()")
    return await _show(db, scope)


async def remove(db: AsyncConnection, scope: Scope, server: str | None, resident_tools: int) -> int:
    """Remove one server of a scope, or all of them. Return how many tools were removed."""
    in_database = await _begin(db, scope)
    condition, values = (
        ("", scope_columns(scope)) if server is None else (" AND server = %s", (*scope_columns(scope), server))
    )
    query = f"SELECT key FROM tools WHERE tenant = %s AND owner = %s{condition}"  # noqa: S608 - fixed condition
    gone = [row[0] for row in await fetch_all(db, query, values)]
    if in_database:
        await search_rows.tally(db, scope, gone, -1)
    if server is None:
        for table in ("servers", "switches", "records"):
            await db.execute(f"DELETE FROM {table} WHERE tenant = %s AND owner = %s", values)  # noqa: S608 - fixed names
    else:
        await db.execute("DELETE FROM servers WHERE tenant = %s AND owner = %s AND key = %s", values)
    await search_rows.update(db, scope, [] if in_database else None, resident_tools)
    await _show(db, scope)
    return len(gone)


async def clean_up(db: AsyncConnection, retention: Retention) -> None:
    """Delete what has long been unused."""
    seconds = (retention.vectors_s, retention.pins_s, retention.settled_s)
    vectors_age, pins_age, settled = (timedelta(seconds=item) for item in seconds)
    await db.execute("SELECT forget_unused(%s)", (vectors_age,))
    await db.execute("SELECT forget_pins(%s, %s, %s)", (pins_age, settled, retention.pins_most))


async def set_enabled(db: AsyncConnection, scope: Scope, keys: Sequence[str], enabled: bool) -> None:
    """Enable or disable published tools, all or none of them."""
    keys = list(dict.fromkeys(keys))
    in_database = await _begin(db, scope)
    query = "SELECT key, facets FROM tools WHERE tenant = %s AND owner = %s AND key = ANY (%s)"
    facets = dict(await fetch_all(db, query, (*scope_columns(scope), keys)))
    for key in keys:
        if key not in facets:
            raise ToolNotFoundError(f"no tool has the key {key!r}", hint="`toolscout list` shows the keys")
    if in_database:
        await search_rows.tally(db, scope, keys, -1)
    await db.execute(_PUT_SWITCHES, (*scope_columns(scope), keys, [enabled] * len(keys)))
    if in_database:
        shown = [key for key in keys if enabled and not search_rows.is_quarantined(facets[key])]
        query = "UPDATE search_rows SET enabled = key = ANY (%s) WHERE tenant = %s AND owner = %s AND key = ANY (%s)"
        await db.execute(query, (shown, *scope_columns(scope), keys))
        await search_rows.tally(db, scope, keys, 1)
    await _show(db, scope)


async def _begin(db: AsyncConnection, scope: Scope, *, exclusive: bool = False) -> bool:
    """Wait for other publishers of the tenant, or of all tenants. Return whether it is searched in the database."""
    await db.execute(_LOCK_EXCLUSIVE if exclusive else _LOCK_SHARED)
    await db.execute("INSERT INTO tenants (tenant) VALUES (%s) ON CONFLICT DO NOTHING", (scope.tenant,))
    locked = "SELECT in_database FROM tenants WHERE tenant = %s FOR NO KEY UPDATE"
    (in_database,) = await fetch_one(db, locked, (scope.tenant,))
    await db.execute(_TOUCH, scope_columns(scope))
    return bool(in_database)


async def _show(db: AsyncConnection, scope: Scope) -> int:
    """Give the scope its next generation, as the last step, and notify the listeners when this is committed."""
    (generation,) = await fetch_one(db, _SHOW, scope_columns(scope))
    await db.execute("SELECT pg_notify(%s, '')", (CHANNEL,))
    return int(generation)


def _columns(entries: Sequence[Entry]) -> tuple[list[Any], ...]:
    return (
        [entry.tool.key for entry in entries],
        [entry.tool.server for entry in entries],
        [entry.stamp for entry in entries],
        [bytes.fromhex(entry.text_hash) for entry in entries],
        [pack_terms(entry.terms) for entry in entries],
        [write_facets(entry).encode("utf-8", "surrogatepass") for entry in entries],
        [write_definition(entry.tool) for entry in entries],
    )
