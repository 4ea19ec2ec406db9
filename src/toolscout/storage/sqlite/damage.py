"""SQLite's own check of a catalogue's file: a damaged page is found only when something reads it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_MAX_PROBLEMS = 3


def find_damage(path: Path) -> str:
    """Return what SQLite finds wrong with a file, "" if nothing. The file is only read."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(f"PRAGMA quick_check({_MAX_PROBLEMS})").fetchall()
    except sqlite3.DatabaseError as error:
        return str(error)
    problems = [str(row[0]).replace("\n", " ") for row in rows if row[0] != "ok"]
    return "; ".join(problems)[:500]
