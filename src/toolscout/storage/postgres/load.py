"""From the rows of a database to a segment in memory, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from psycopg import AsyncConnection

from toolscout.models import Scope
from toolscout.storage.postgres.ask import every, one
from toolscout.storage.postgres.codec import little_halves

if TYPE_CHECKING:
    from toolscout.storage.index.segment import Segment

_STATE = """
    SELECT coalesce(s.generation, 0), c.model_id, coalesce(t.in_database, false)
    FROM catalogue c LEFT JOIN tenants t ON t.tenant = %(tenant)s
    LEFT JOIN scopes s ON s.tenant = %(tenant)s AND s.owner = %(owner)s
"""
_ROWS = """
    SELECT t.tenant, t.key, t.owner, t.server, w.enabled, t.facets, t.definition, t.terms, v.vector
    FROM tools t LEFT JOIN switches w USING (tenant, owner, key)
    LEFT JOIN models m ON m.model_id = %(model)s
    LEFT JOIN vectors v ON v.model = m.model AND v.text_hash = t.text_hash
    WHERE t.tenant = %(tenant)s AND t.owner = %(owner)s
    ORDER BY t.key
"""


async def read_segment(
    db: AsyncConnection, scope: Scope, exact_rows: int, where: str, *, whole: bool = False
) -> Callable[[], Segment] | None:
    """Read the visible generation of a scope and return what builds its segment, once the connection is free again.

    There is none where the tenant is searched in the database, unless the `whole` of it is asked for.
    """
    names = {"tenant": scope.tenant, "owner": scope.owner or ""}
    generation, model_id, in_database = await one(db, _STATE, names)
    if in_database and not whole:
        return None
    found = await every(db, _ROWS, {**names, "model": model_id})

    def build() -> Segment:
        from toolscout.storage.load import build_segment

        rows: list[tuple[Any, ...]] = [
            (*row[:5], row[5].decode("utf-8", "surrogatepass"), row[6], row[7], little_halves(row[8])) for row in found
        ]
        return build_segment(
            rows, scope=scope, generation=generation, model_id=model_id, exact_rows=exact_rows, where=where
        )

    return build
