"""The embedded store: one SQLite file, or memory."""

from toolscout.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
