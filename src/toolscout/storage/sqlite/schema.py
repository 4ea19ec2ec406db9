"""The SQLite schema as numbered migration scripts. All that are missing run in one transaction."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from toolscout.storage.migrations import read_migrations, refuse_newer

MIGRATIONS = read_migrations(Path(__file__).parent / "migrations")
"""Each script runs once, in order. A released script is never edited."""


def migrate(connection: sqlite3.Connection, where: str) -> None:
    """Bring the file to the newest schema, or refuse a file that a newer toolscout wrote."""
    if _version(connection) == len(MIGRATIONS):  # nothing to do: do not wait for a writer's lock
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        refuse_newer(version, len(MIGRATIONS), where, "file")
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in script.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
