"""SQLite's own check of a catalogue's file: a damaged page is found only when something reads it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_MAX_PROBLEMS = 3


REPAIR = (
    "stop the gateway and restore the file from a copy; without one, move it elsewhere and run `toolscout index`: the "
    "API keys, approvals, switches and sign-ins in it are then lost"
)
"""What an operator does about a damaged file."""

_NOT_LOOKED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM)
"""With these codes, SQLite has not seen the content of the file."""


def find_damage(path: Path) -> str:
    """Return what SQLite finds wrong with a file, "" if nothing. The file is only read."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(f"PRAGMA quick_check({_MAX_PROBLEMS})").fetchall()
    except sqlite3.DatabaseError as error:
        return "" if error.sqlite_errorcode & 0xFF in _NOT_LOOKED else str(error)
    problems = [str(row[0]).replace("\n", " ") for row in rows if row[0] != "ok"]
    return "; ".join(problems)[:500]
