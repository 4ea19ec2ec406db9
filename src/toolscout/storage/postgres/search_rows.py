"""The table of search rows, for tenants with a scope too large for memory.

The rows are derived from the tools in the publishing transaction: one for each tool, with its lexemes, its filter
columns and a copy of its vector. Counts of what can be seen are kept beside them, so that no search has to count.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection

from toolscout.models import Scope
from toolscout.storage.columns import scope_columns
from toolscout.storage.postgres.encoding import name_id, tool_lexemes
from toolscout.storage.postgres.pool import fetch_all, fetch_one
from toolscout.text import split_words

_CHUNK = 2_000
_BACK_TO_MEMORY = 0.8
"""A tenant is searched in memory again when its largest scope is under this share of the limit."""

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
_IN_DATABASE = "UPDATE tenants SET in_database = %s WHERE tenant = %s"


async def tally(db: AsyncConnection, scope: Scope, keys: Sequence[str] | None, sign: int) -> None:
    """Add these tools of a scope, or all, to its counts (sign 1), or subtract them (sign -1)."""
    if keys is None or keys:
        await db.execute("SELECT tally(%s, %s, %s)", (scope.owner or "", keys, sign))


async def update(db: AsyncConnection, scope: Scope, changed: Sequence[str] | None, resident_tools: int) -> None:
    """Update the rows of the `changed` keys after a publication. None means that the tenant has no rows so far."""
    await db.execute(_COUNT, scope_columns(scope))
    (largest,) = await fetch_one(db, _LARGEST, (scope.tenant,))
    if changed is None:
        if largest > resident_tools:
            await _create(db, scope.tenant)
    elif largest <= resident_tools * _BACK_TO_MEMORY:
        await _drop(db, scope.tenant)
    elif changed:
        await _put(db, scope, changed)
        await tally(db, scope, changed, 1)


async def _create(db: AsyncConnection, tenant: str) -> None:
    """Create the rows of every scope of a tenant."""
    await db.execute(_IN_DATABASE, (True, tenant))
    for (owner,) in await fetch_all(db, "SELECT owner FROM scopes WHERE tenant = %s", (tenant,)):
        scope = Scope(tenant=tenant, owner=owner or None)
        keys = [row[0] for row in await fetch_all(db, _KEYS, scope_columns(scope))]
        await _put(db, scope, keys)
        await tally(db, scope, None, 1)


async def _drop(db: AsyncConnection, tenant: str) -> None:
    await db.execute(_IN_DATABASE, (False, tenant))
    for table in ("search_rows", "term_counts", "summaries"):
        await db.execute(f"DELETE FROM {table} WHERE tenant = %s", (tenant,))  # noqa: S608 - fixed names


async def _put(db: AsyncConnection, scope: Scope, keys: Sequence[str]) -> None:
    """Write rows from values that are sent: the planner has no statistics to join with rows just written."""
    (model,) = await fetch_one(db, _MODEL)
    names = {"tenant": scope.tenant, "owner": scope.owner or "", "model": model}
    for start in range(0, len(keys), _CHUNK):
        tools = await fetch_all(db, _READ, (*scope_columns(scope), list(keys[start : start + _CHUNK])))
        if tools:
            await db.execute(_PUT, {**names, **await asyncio.to_thread(_columns, scope.tenant, tools)})


def _columns(tenant: str, tools: Sequence[Any]) -> dict[str, list[Any]]:
    columns = zip(*(_row(tenant, *row) for row in tools), strict=True)
    return {name: list(column) for name, column in zip(_COLUMNS, columns, strict=True)}


def _row(
    tenant: str, key: str, server: str, text_hash: bytes, terms: bytes, facets: bytes, switch: bool | None
) -> tuple[Any, ...]:
    """Return one row, in the order of the columns."""
    values = json.loads(facets.decode("utf-8", "surrogatepass"))
    name, category, tags, enabled, tokens = values[2], values[5], values[6], values[9], values[11]
    tag_names = {tag.casefold() for tag in tags}
    labels = [("@", server), ("=", category), *(("#", tag) for tag in sorted(tag_names))]
    return (
        key,
        server,
        text_hash,
        (enabled if switch is None else switch) and not is_quarantined(facets),
        tokens,
        category.encode("utf-8", "surrogatepass"),
        name_id(category),
        " ".join(str(name_id(tag)) for tag in sorted(tag_names)),
        " ".join(sorted({f"~{word}" for word in split_words(name)})),
        terms,
        tool_lexemes(tenant, terms, labels),
    )


def is_quarantined(facets: bytes) -> bool:
    """Tell whether a tool is quarantined: then it stays hidden even when an operator enables it."""
    values = json.loads(facets.decode("utf-8", "surrogatepass"))
    return len(values) > 13 and bool(values[13])
