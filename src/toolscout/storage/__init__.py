"""The stores of the catalogue: SQLite, in a file or in memory, and PostgreSQL."""

from __future__ import annotations

from toolscout.errors import SettingError
from toolscout.ports import AccessFilter, Store
from toolscout.settings import Settings, sqlite_file
from toolscout.telemetry import without_password


def open_store(settings: Settings, access: AccessFilter) -> Store:
    """Build the store that the settings name. Call its `open()` before use."""
    url = settings.store_url
    if url.startswith(("postgresql://", "postgres://")):
        return _postgres(url, access, settings)

    from toolscout.storage.sqlite import SqliteStore

    if url == "memory:":
        return SqliteStore(None, access, settings)
    if path := sqlite_file(url):
        return SqliteStore(path, access, settings)
    raise SettingError(
        f"{without_password(url)!r} names no store", hint="use memory:, sqlite:///PATH or postgresql://..."
    )


def _postgres(url: str, access: AccessFilter, settings: Settings) -> Store:
    try:
        from toolscout.storage.postgres.store import PostgresStore
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("psycopg", "psycopg_pool"):
            raise
        raise SettingError(
            "a postgresql:// store needs its driver", hint="pip install 'toolscout[postgres]'"
        ) from error
    return PostgresStore(url, access, settings)
