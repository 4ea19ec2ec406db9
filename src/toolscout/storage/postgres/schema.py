"""The PostgreSQL schema as numbered migration scripts. Replicas may start at once: a lock lets only one migrate."""

from __future__ import annotations

from pathlib import Path

from psycopg import AsyncConnection, errors, sql

from toolscout.errors import StoreError
from toolscout.storage.migrations import read_migrations, refuse_newer

MIGRATIONS = read_migrations(Path(__file__).parent / "migrations")
"""Each script runs once, in order. A released script is never edited."""

ROLE = "toolscout_app"
"""The role of the store: it does not own the tables, so that row-level security applies to it."""

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('toolscout:migrate', 0))"
_EXTENSION = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'vector'"
)
_HAS_VERSION = """
    SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'toolscout' AND c.relname = 'schema_version'
"""
"""`to_regclass` would not do: it may answer from before the wait for the lock."""

_ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'toolscout_app') THEN
        BEGIN
            CREATE ROLE toolscout_app NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END IF;
    IF NOT pg_has_role(current_user, 'toolscout_app', 'MEMBER') THEN
        GRANT toolscout_app TO CURRENT_USER;
    END IF;
END $$
"""


async def migrate(db: AsyncConnection, where: str) -> str:
    """Bring the tables to the newest version, or refuse a newer one. Return the schema that pgvector is in."""
    version = await _version(db)
    if version != len(MIGRATIONS):
        async with db.transaction():
            await db.execute(_LOCK)
            version = await _version(db)
            refuse_newer(version, len(MIGRATIONS), where, "database")
            if version < len(MIGRATIONS):
                await _apply(db, version)
    row = await (await db.execute(_EXTENSION)).fetchone()
    return str(row[0]) if row else "public"


async def _apply(db: AsyncConnection, version: int) -> None:
    try:
        await db.execute(_ROLE)
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the database has no role {ROLE}, and this login may not create one",
            hint=f"as an administrator: CREATE ROLE {ROLE}; GRANT {ROLE} TO the login of the address",
        ) from error
    vector = await _extension(db)
    await db.execute("CREATE SCHEMA IF NOT EXISTS toolscout")
    await db.execute(sql.SQL("SET LOCAL search_path = toolscout, {}").format(sql.Identifier(vector)))
    await db.execute("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)")
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        await db.execute(script.replace("{vector}", sql.Identifier(vector).as_string(db)))
        await db.execute("DELETE FROM schema_version")
        await db.execute("INSERT INTO schema_version VALUES (%s)", (number,))


async def _extension(db: AsyncConnection) -> str:
    """Return the schema of pgvector. Create the extension if it is missing and this login may do so."""
    row = await (await db.execute(_EXTENSION)).fetchone()
    if row:
        return str(row[0])
    try:
        async with db.transaction():
            await db.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (errors.InsufficientPrivilege, errors.FeatureNotSupported, errors.UndefinedFile) as error:
        raise StoreError(
            "the database has no pgvector, and this login cannot add it",
            hint="as an administrator: install pgvector 0.8 or newer, then CREATE EXTENSION vector in the database",
        ) from error
    return await _extension(db)


async def _version(db: AsyncConnection) -> int:
    if not await (await db.execute(_HAS_VERSION)).fetchone():
        return 0
    row = await (await db.execute("SELECT max(version) FROM toolscout.schema_version")).fetchone()
    return int(row[0] or 0) if row else 0
