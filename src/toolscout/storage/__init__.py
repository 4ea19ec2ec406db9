"""Where the catalogue lives."""

from __future__ import annotations

from pathlib import Path

from toolscout.errors import SettingError
from toolscout.ports import Predicate, Store
from toolscout.settings import Settings
from toolscout.telemetry import without_password


def open_store(settings: Settings, predicate: Predicate) -> Store:
    """Build the store that the settings name; it is opened by its own `open()`."""
    url = settings.store_url
    if url.startswith(("postgresql://", "postgres://")):
        return _postgres(url, predicate, settings)

    from toolscout.storage.sqlite import SqliteStore

    if url == "memory:":
        return SqliteStore(None, predicate, settings)
    if path := sqlite_file(url):
        return SqliteStore(path, predicate, settings)
    raise SettingError(
        f"{without_password(url)!r} names no store", hint="use memory:, sqlite:///PATH or postgresql://..."
    )


def sqlite_file(url: str) -> Path | None:
    """Return the file that an address names, where it names one."""
    name = url.removeprefix("sqlite:///")
    return Path(name).expanduser() if name and name != url else None


def _postgres(url: str, predicate: Predicate, settings: Settings) -> Store:
    try:
        from toolscout.storage.postgres.store import PostgresStore
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("psycopg", "psycopg_pool"):
            raise
        raise SettingError(
            "a postgresql:// store needs its driver", hint="pip install 'toolscout[postgres]'"
        ) from error
    return PostgresStore(url, predicate, settings)
