"""What is read from the database itself; searches read segments in memory, or the rows made for searching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psycopg import AsyncConnection

from toolscout.models import Scope, Server, Tool
from toolscout.storage import rows
from toolscout.storage.postgres.ask import every
from toolscout.storage.postgres.codec import from_halves

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_CHUNK = 10_000
_STORED = """
    SELECT tenant, key, owner, server, facets, definition FROM tools
    WHERE tenant = %s AND owner = %s ORDER BY key
"""


def whose(scope: Scope) -> tuple[str, str]:
    """Write a scope as its two columns; everyone's has an empty owner."""
    return scope.tenant, scope.owner or ""


async def generations(db: AsyncConnection, since: int = 0) -> dict[Scope, tuple[int, str, bool]]:
    """Return generation, model, and whether it is searched in the database, of the scopes changed since a number."""
    query = "SELECT tenant, owner, generation, model_id, in_database FROM toolscout.generations(%s)"
    found = await every(db, query, (since,))
    return {Scope(tenant=row[0], owner=row[1] or None): (row[2], row[3], row[4]) for row in found}


async def stamps(db: AsyncConnection, scope: Scope, server: str) -> dict[str, str]:
    """Return key -> stamp for a server's published tools."""
    query = "SELECT key, stamp FROM tools WHERE tenant = %s AND owner = %s AND server = %s"
    return dict(await every(db, query, (*whose(scope), server)))


async def servers(db: AsyncConnection, scope: Scope) -> list[Server]:
    """Return the servers of a scope."""
    query = "SELECT key, title, trusted FROM servers WHERE tenant = %s AND owner = %s ORDER BY key"
    found = await every(db, query, whose(scope))
    return [Server(key=row[0], title=row[1].decode("utf-8", "surrogatepass"), trusted=row[2]) for row in found]


async def switches(db: AsyncConnection, scope: Scope) -> dict[str, bool]:
    """Return what was switched by hand."""
    query = "SELECT key, enabled FROM switches WHERE tenant = %s AND owner = %s ORDER BY key"
    return dict(await every(db, query, whose(scope)))


async def stored_tools(db: AsyncConnection, scope: Scope) -> list[Tool]:
    """Return all tools of a scope as they were published."""
    return [_tool(row) for row in await every(db, _STORED, whose(scope))]


async def unembedded(db: AsyncConnection, model_id: str) -> list[Tool]:
    """Return the published tools whose text has no vector of this model."""
    return [_tool(row) for row in await every(db, "SELECT * FROM unembedded(%s)", (model_id,))]


async def missing_vectors(db: AsyncConnection, model_id: str, text_hashes: Sequence[str]) -> set[str]:
    """Return those texts that have no vector of this model."""
    missing = {*text_hashes}
    for start in range(0, len(text_hashes), _CHUNK):
        part = [bytes.fromhex(item) for item in text_hashes[start : start + _CHUNK]]
        found = await every(db, "SELECT vectors_known(%s, %s)", (model_id, part))
        missing.difference_update(row[0].hex() for row in found)
    return missing


async def vectors(db: AsyncConnection, model_id: str, text_hashes: Sequence[str]) -> dict[str, FloatArray]:
    """Return the vectors that there are, by their texts."""
    held: dict[str, FloatArray] = {}
    for start in range(0, len(text_hashes), _CHUNK):
        part = [bytes.fromhex(item) for item in text_hashes[start : start + _CHUNK]]
        found = await every(db, "SELECT * FROM vectors_of(%s, %s)", (model_id, part))
        held |= {text_hash.hex(): from_halves(sent) for text_hash, sent in found}
    return held


def _tool(row: Sequence[Any]) -> Tool:
    tenant, key, owner, server, facets, definition = row
    text = facets.decode("utf-8", "surrogatepass")
    return rows.read_tool(rows.read_facets(tenant, key, owner, server, None, text), definition)
