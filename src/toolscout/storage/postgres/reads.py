"""Queries on the tables of the catalogue. Searches read segments in memory, or the search rows, instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import AsyncConnection

from toolscout.models import Scope, Server, Tool
from toolscout.storage.columns import read_facets, read_tool, scope_columns
from toolscout.storage.postgres.encoding import from_halves, little_halves
from toolscout.storage.postgres.pool import fetch_all, fetch_one

if TYPE_CHECKING:
    from toolscout.models import FloatArray
    from toolscout.storage.index.segment import Segment

_CHUNK = 10_000
_STORED = """
    SELECT tenant, key, owner, server, facets, definition FROM tools
    WHERE tenant = %s AND owner = %s ORDER BY key
"""

_STATE = """
    SELECT coalesce(s.generation, 0), c.model_id, coalesce(t.in_database, false)
    FROM catalogue c LEFT JOIN tenants t ON t.tenant = %(tenant)s
    LEFT JOIN scopes s ON s.tenant = %(tenant)s AND s.owner = %(owner)s
"""
_SEGMENT = """
    SELECT t.tenant, t.key, t.owner, t.server, w.enabled, t.facets, t.definition, t.terms, v.vector
    FROM tools t LEFT JOIN switches w USING (tenant, owner, key)
    LEFT JOIN models m ON m.model_id = %(model)s
    LEFT JOIN vectors v ON v.model = m.model AND v.text_hash = t.text_hash
    WHERE t.tenant = %(tenant)s AND t.owner = %(owner)s
    ORDER BY t.key
"""


class ScopeGeneration(NamedTuple):
    """The state of a scope that was published."""

    generation: int
    model_id: str
    in_database: bool
    """Whether the tenant is searched in the database instead of in memory."""


Generations = dict[Scope, ScopeGeneration]


async def generations(db: AsyncConnection, since: int = 0) -> Generations:
    """Return the state of every scope that has a generation from `since` on."""
    query = "SELECT tenant, owner, generation, model_id, in_database FROM toolscout.generations(%s)"
    rows = await fetch_all(db, query, (since,))
    return {Scope(tenant=tenant, owner=owner or None): ScopeGeneration(*state) for tenant, owner, *state in rows}


async def stamps(db: AsyncConnection, scope: Scope, server: str) -> dict[str, str]:
    """Return the stamp of each published tool of a server, by key."""
    query = "SELECT key, stamp FROM tools WHERE tenant = %s AND owner = %s AND server = %s"
    return dict(await fetch_all(db, query, (*scope_columns(scope), server)))


async def servers(db: AsyncConnection, scope: Scope) -> list[Server]:
    """Return the servers of a scope."""
    query = "SELECT key, title, trusted FROM servers WHERE tenant = %s AND owner = %s ORDER BY key"
    rows = await fetch_all(db, query, scope_columns(scope))
    return [Server(key=row[0], title=row[1].decode("utf-8", "surrogatepass"), trusted=row[2]) for row in rows]


async def switches(db: AsyncConnection, scope: Scope) -> dict[str, bool]:
    """Return which tools were enabled or disabled by an operator, by key."""
    query = "SELECT key, enabled FROM switches WHERE tenant = %s AND owner = %s ORDER BY key"
    return dict(await fetch_all(db, query, scope_columns(scope)))


async def stored_tools(db: AsyncConnection, scope: Scope) -> list[Tool]:
    """Return all tools of a scope as they were published."""
    return [_tool(row) for row in await fetch_all(db, _STORED, scope_columns(scope))]


async def unembedded(db: AsyncConnection, model_id: str) -> list[Tool]:
    """Return the published tools whose text has no vector of this model."""
    return [_tool(row) for row in await fetch_all(db, "SELECT * FROM unembedded(%s)", (model_id,))]


async def missing_vectors(db: AsyncConnection, model_id: str, text_hashes: Sequence[str]) -> set[str]:
    """Return the hashes of the texts that have no vector of this model."""
    missing = {*text_hashes}
    for start in range(0, len(text_hashes), _CHUNK):
        chunk = [bytes.fromhex(item) for item in text_hashes[start : start + _CHUNK]]
        rows = await fetch_all(db, "SELECT vectors_known(%s, %s)", (model_id, chunk))
        missing.difference_update(row[0].hex() for row in rows)
    return missing


async def vectors(db: AsyncConnection, model_id: str, text_hashes: Sequence[str]) -> dict[str, FloatArray]:
    """Return the stored vectors of these texts, by text hash."""
    vectors_by_hash: dict[str, FloatArray] = {}
    for start in range(0, len(text_hashes), _CHUNK):
        chunk = [bytes.fromhex(item) for item in text_hashes[start : start + _CHUNK]]
        rows = await fetch_all(db, "SELECT * FROM vectors_of(%s, %s)", (model_id, chunk))
        vectors_by_hash |= {text_hash.hex(): from_halves(data) for text_hash, data in rows}
    return vectors_by_hash


async def read_segment(
    db: AsyncConnection, scope: Scope, exact_rows: int, where: str, *, whole: bool = False
) -> Callable[[], Segment] | None:
    """Read the visible generation of a scope. Return a function that builds its segment without the connection.

    Return None where the tenant is searched in the database, unless the `whole` scope is asked for.
    """
    names = {"tenant": scope.tenant, "owner": scope.owner or ""}
    generation, model_id, in_database = await fetch_one(db, _STATE, names)
    if in_database and not whole:
        return None
    rows = await fetch_all(db, _SEGMENT, {**names, "model": model_id})

    def build() -> Segment:
        from toolscout.storage.index.segment import Segment

        return Segment.from_rows(
            [
                (*row[:5], row[5].decode("utf-8", "surrogatepass"), row[6], row[7], little_halves(row[8]))
                for row in rows
            ],
            scope=scope,
            generation=generation,
            model_id=model_id,
            exact_rows=exact_rows,
            where=where,
        )

    return build


def _tool(row: Sequence[Any]) -> Tool:
    tenant, key, owner, server, facets, definition = row
    text = facets.decode("utf-8", "surrogatepass")
    return read_tool(read_facets(tenant, key, owner, server, None, text), definition)
