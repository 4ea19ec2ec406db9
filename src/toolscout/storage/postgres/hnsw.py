"""The HNSW graph of each model: a partial index of the search rows, built while searches go on."""

from __future__ import annotations

import psycopg
from psycopg import AsyncConnection, sql

from toolscout.storage.postgres.pool import ConnectionPool

NEIGHBOURS, BUILD_WIDTH = 16, 64

_LOCK = "SELECT pg_try_advisory_lock(hashtextextended('toolscout:graph', 0))"
_MODEL = """
    SELECT m.model, m.dimension,
        (SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid =
            to_regclass(format('toolscout.search_rows_hnsw_%%s_%%s', m.model, m.dimension)))
    FROM toolscout.models m WHERE m.model_id = %s
    AND EXISTS (SELECT 1 FROM toolscout.scopes s JOIN toolscout.tenants t USING (tenant)
                WHERE t.in_database AND s.tools > %s)
"""
_CREATE = """
    CREATE INDEX CONCURRENTLY {name} ON toolscout.search_rows
    USING hnsw ((embedding::halfvec({dimension})) {path}.halfvec_cosine_ops)
    WITH (m = {neighbours}, ef_construction = {width}) WHERE model = {model}
"""


def index_name(model: int, dimension: int) -> str:
    """Return the name of a model's index."""
    return f"search_rows_hnsw_{model}_{dimension}"


async def build(pool: ConnectionPool, model_id: str, exact_rows: int) -> bool:
    """Build the graph of a model when a scope is too large to be searched exactly. Tell whether it exists now.

    Searches are exact until it does. Only the owner of the tables may build it: another login returns False.
    """
    db = await pool.connect()
    try:
        return await pool.bounded(_build(db, pool, model_id, exact_rows), [db])
    except psycopg.errors.InsufficientPrivilege:
        return False
    except (psycopg.Error, OSError, TimeoutError) as error:
        raise pool.failure(error) from error
    finally:
        db.pgconn.finish()


async def _build(db: AsyncConnection, pool: ConnectionPool, model_id: str, exact_rows: int) -> bool:
    row = await (await db.execute(_MODEL, (model_id, exact_rows))).fetchone()
    if row is None:
        return False
    model, dimension, valid = row
    if valid:
        return True
    locked = await (await db.execute(_LOCK)).fetchone()
    if not locked or not locked[0]:
        return False
    name = sql.Identifier(index_name(model, dimension))
    if valid is False:  # an interrupted build leaves an invalid index
        await db.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS toolscout.{}").format(name))
    await db.execute(
        sql.SQL(_CREATE).format(
            name=name,
            dimension=sql.Literal(dimension),
            path=sql.Identifier(pool.vector_schema),
            neighbours=sql.Literal(NEIGHBOURS),
            width=sql.Literal(BUILD_WIDTH),
            model=sql.Literal(model),
        )
    )
    return True
