"""The rows that a search in the database looks at: only for tenants with a scope too large for memory.

They follow from the tools and are kept in the publishing transaction: one row for each tool with its lexemes, its
filters and a copy of its vector, and counts of what can be seen, so that no search has to count.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection

from toolscout.models import Scope
from toolscout.storage.postgres.encoding import lexemes, name_id
from toolscout.storage.postgres.pool import fetch_all, fetch_one
from toolscout.storage.postgres.reads import whose
from toolscout.text import split_words

_CHUNK = 2_000
_OUT = 0.8
"""A tenant goes back to memory when its largest scope is under this share of the limit."""

_READ = """
    SELECT t.key, t.server, t.text_hash, t.terms, t.facets, w.enabled
    FROM tools t LEFT JOIN switches w USING (tenant, owner, key)
    WHERE t.tenant = %s AND t.owner = %s AND t.key = ANY (%s)
"""
_KEYS = "SELECT key FROM tools WHERE tenant = %s AND owner = %s ORDER BY key"
_MODEL = "SELECT coalesce(m.model, 0) FROM catalogue c LEFT JOIN models m USING (model_id)"
_PUT = """
    INSERT INTO search_rows AS r
        (tenant, owner, model, embedding,
         key, server, enabled, tokens, category, category_id, tags, names, terms, words)
    SELECT %(tenant)s, %(owner)s, %(model)s,
        (SELECT v.vector FROM vectors v WHERE v.model = %(model)s AND v.text_hash = n.text_hash),
        n.key, n.server, n.enabled, n.tokens, n.category, n.category_id, string_to_array(n.tags, ' ')::bigint[],
        n.names, n.terms, array_to_tsvector(string_to_array(n.words, ' '))
    FROM unnest(%(key)b::text[], %(server)b::text[], %(text_hash)b::bytea[], %(enabled)b::boolean[],
            %(tokens)b::integer[], %(category)b::bytea[], %(category_id)b::bigint[], %(tags)b::text[],
            %(names)b::text[], %(terms)b::bytea[], %(words)b::text[])
        AS n (key, server, text_hash, enabled, tokens, category, category_id, tags, names, terms, words)
    ON CONFLICT (tenant, owner, key) DO UPDATE SET
        (model, embedding, server, enabled, tokens, category, category_id, tags, names, terms, words) =
        (excluded.model, excluded.embedding, excluded.server, excluded.enabled, excluded.tokens, excluded.category,
         excluded.category_id, excluded.tags, excluded.names, excluded.terms, excluded.words)
"""
_COLUMNS = (
    "key",
    "server",
    "text_hash",
    "enabled",
    "tokens",
    "category",
    "category_id",
    "tags",
    "names",
    "terms",
    "words",
)
_COUNT = """
    UPDATE scopes SET tools = (SELECT count(*) FROM tools t WHERE t.tenant = scopes.tenant AND t.owner = scopes.owner)
    WHERE tenant = %s AND owner = %s
"""
_LARGEST = "SELECT coalesce(max(tools), 0) FROM scopes WHERE tenant = %s"
_HOME = "UPDATE tenants SET in_database = %s WHERE tenant = %s"


async def tally(db: AsyncConnection, scope: Scope, keys: Sequence[str] | None, sign: int) -> None:
    """Add these tools of a scope, or all, to its counts, or take them away."""
    if keys is None or keys:
        await db.execute("SELECT tally(%s, %s, %s)", (scope.owner or "", keys, sign))


async def follow(db: AsyncConnection, scope: Scope, touched: Sequence[str] | None, resident_tools: int) -> None:
    """Count the tools and bring the rows after what was published; None says that there were none so far."""
    await db.execute(_COUNT, whose(scope))
    (largest,) = await fetch_one(db, _LARGEST, (scope.tenant,))
    if touched is None:
        if largest > resident_tools:
            await _make(db, scope.tenant)
    elif largest <= resident_tools * _OUT:
        await _unmake(db, scope.tenant)
    elif touched:
        await _put(db, scope, touched)
        await tally(db, scope, touched, 1)


async def _make(db: AsyncConnection, tenant: str) -> None:
    """Make the rows of every scope of a tenant."""
    await db.execute(_HOME, (True, tenant))
    for (owner,) in await fetch_all(db, "SELECT owner FROM scopes WHERE tenant = %s", (tenant,)):
        scope = Scope(tenant=tenant, owner=owner or None)
        keys = [row[0] for row in await fetch_all(db, _KEYS, whose(scope))]
        await _put(db, scope, keys)
        await tally(db, scope, None, 1)


async def _unmake(db: AsyncConnection, tenant: str) -> None:
    await db.execute(_HOME, (False, tenant))
    for table in ("search_rows", "term_counts", "summaries"):
        await db.execute(f"DELETE FROM {table} WHERE tenant = %s", (tenant,))  # noqa: S608 - our own names


async def _put(db: AsyncConnection, scope: Scope, keys: Sequence[str]) -> None:
    """Write rows; all that they are made of is sent, as a join with rows just written would be planned blindly."""
    (model,) = await fetch_one(db, _MODEL)
    names = {"tenant": scope.tenant, "owner": scope.owner or "", "model": model}
    for start in range(0, len(keys), _CHUNK):
        found = await fetch_all(db, _READ, (*whose(scope), list(keys[start : start + _CHUNK])))
        if found:
            await db.execute(_PUT, {**names, **await asyncio.to_thread(_columns, scope.tenant, found)})


def _columns(tenant: str, found: Sequence[Any]) -> dict[str, list[Any]]:
    columns = zip(*(_row(tenant, *row) for row in found), strict=True)
    return {name: list(column) for name, column in zip(_COLUMNS, columns, strict=True)}


def _row(
    tenant: str, key: str, server: str, text_hash: bytes, terms: bytes, facets: bytes, switch: bool | None
) -> tuple[Any, ...]:
    """Write one row, in the order of the columns."""
    values = json.loads(facets.decode("utf-8", "surrogatepass"))
    name, category, tags, enabled, tokens = values[2], values[5], values[6], values[9], values[11]
    folded = {tag.casefold() for tag in tags}
    labels = [("@", server), ("=", category), *(("#", tag) for tag in sorted(folded))]
    return (
        key,
        server,
        text_hash,
        (enabled if switch is None else switch) and not held_in(facets),
        tokens,
        category.encode("utf-8", "surrogatepass"),
        name_id(category),
        " ".join(str(name_id(tag)) for tag in sorted(folded)),
        " ".join(sorted({f"~{word}" for word in split_words(name)})),
        terms,
        lexemes(tenant, terms, labels),
    )


def held_in(facets: bytes) -> bool:
    """Tell whether a tool is kept from everyone: no switch turns it on."""
    values = json.loads(facets.decode("utf-8", "surrogatepass"))
    return len(values) > 13 and bool(values[13])
