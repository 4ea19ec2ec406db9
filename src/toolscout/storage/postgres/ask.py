"""Asking: all rows of an answer, or its one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection

from toolscout.errors import StoreError

Values = Sequence[Any] | Mapping[str, Any] | None


async def every(db: AsyncConnection, query: str, values: Values = None) -> list[Any]:
    """Return all rows."""
    return await (await db.execute(query, values, binary=True)).fetchall()


async def one(db: AsyncConnection, query: str, values: Values = None) -> tuple[Any, ...]:
    """Return the only row of an answer that always has one."""
    found = await (await db.execute(query, values, binary=True)).fetchone()
    if found is None:
        raise StoreError("the database has lost a row that is always there", hint="run `toolscout doctor`")
    return found
