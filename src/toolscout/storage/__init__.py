"""Where the catalogue lives."""

from __future__ import annotations

from pathlib import Path

from toolscout.errors import SettingError
from toolscout.ports import Predicate, Store
from toolscout.settings import Settings, data_folder
from toolscout.telemetry import without_password


def open_store(settings: Settings, predicate: Predicate) -> Store:
    """Build the store that the settings name; it is opened by its own `open()`."""
    from toolscout.storage.sqlite import SqliteStore

    url = settings.store or f"sqlite:///{data_folder() / 'catalogue.db'}"
    if url == "memory:":
        return SqliteStore(None, predicate, settings)
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return SqliteStore(Path(url.removeprefix("sqlite:///")).expanduser(), predicate, settings)
    raise SettingError(f"{without_password(url)!r} names no store", hint="use memory: or sqlite:///PATH")
