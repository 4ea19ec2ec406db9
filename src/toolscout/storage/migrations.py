"""Numbered migration scripts, `1.sql`, `2.sql` and so on, of SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from toolscout.errors import SchemaVersionError


def read_migrations(folder: Path) -> tuple[str, ...]:
    """Read the scripts of a folder in order."""
    count = len(list(folder.glob("*.sql")))
    return tuple((folder / f"{number}.sql").read_text("utf-8") for number in range(1, count + 1))


def refuse_newer(version: int, newest: int, where: str, kind: str) -> None:
    """Refuse a store whose schema is newer than the newest that this version of toolscout knows."""
    if version > newest:
        raise SchemaVersionError(
            f"{where} has schema {version}, this toolscout knows schemas up to {newest}",
            hint=f"upgrade toolscout, or name another {kind} with --store",
            where=where,
        )
