"""Records beside the catalogue, such as API keys and pins. The body of each is JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

from psycopg import AsyncConnection

from toolscout.models import Record, Scope
from toolscout.storage.columns import scope_columns
from toolscout.storage.postgres.pool import ConnectionPool, fetch_all

_LAST = "\U0010ffff"
_OF_ONE = """
    SELECT tenant, owner, name, body FROM records
    WHERE kind = %s AND tenant = %s AND owner = %s AND name >= %s AND name <= %s ORDER BY name
"""
_OF_ALL = "SELECT tenant, owner, name, body FROM records_of_all(%s, %s, %s)"
_PUT = "INSERT INTO records VALUES (%s, %s, %s, %s, %s) ON CONFLICT (kind, tenant, owner, name) "

_REMOVE = "DELETE FROM records WHERE kind = %s AND tenant = %s AND owner = %s AND name = %s"


async def find_record(pool: ConnectionPool, kind: str, name: str) -> Record | None:
    """Return one record by its name, of any tenant."""
    rows = await pool.run(lambda db: fetch_all(db, _OF_ALL, (kind, name, name)))
    return _record(kind, rows[0]) if rows else None


async def find_records(pool: ConnectionPool, kind: str, scope: Scope | None, prefix: str) -> list[Record]:
    """Return the records of a kind whose names have the prefix."""
    if scope is None:
        rows = await pool.run(lambda db: fetch_all(db, _OF_ALL, (kind, prefix, prefix + _LAST)))
    else:
        values = (kind, *scope_columns(scope), prefix, prefix + _LAST)
        rows = await pool.run(lambda db: fetch_all(db, _OF_ONE, values), tenant=scope.tenant)
    return [_record(kind, row) for row in rows]


async def put_records(pool: ConnectionPool, records: Sequence[Record], *, replace: bool) -> None:
    """Store records, in one transaction for each tenant."""
    query = _PUT + ("DO UPDATE SET body = excluded.body" if replace else "DO NOTHING")
    by_tenant: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for item in records:
        body = json.dumps(item.body, ensure_ascii=True)
        by_tenant[item.scope.tenant].append((item.kind, *scope_columns(item.scope), item.name, body))
    for tenant, values in by_tenant.items():

        async def write(db: AsyncConnection, values: Sequence[tuple[str, ...]] = values) -> None:
            async with db.cursor() as cursor:
                await cursor.executemany(query, values)

        await pool.run(write, tenant=tenant)


async def remove_record(pool: ConnectionPool, kind: str, scope: Scope, name: str) -> None:
    """Remove one record."""
    values = (kind, *scope_columns(scope), name)

    async def remove(db: AsyncConnection) -> None:
        await db.execute(_REMOVE, values)

    await pool.run(remove, tenant=scope.tenant)


def _record(kind: str, row: Sequence[str]) -> Record:
    tenant, owner, name, body = row
    return Record(kind=kind, scope=Scope(tenant=tenant, owner=owner or None), name=name, body=json.loads(body))
