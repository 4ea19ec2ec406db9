"""The audit log: one JSON line for every call and every administrative act, appended, rotated, never changed."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolscout.errors import InputFileError
from toolscout.telemetry.events import emit

_KEPT = 10


class AuditLog:
    """Lines in a file; a process writes each of them at once, so that several can share the file.

    Without a path, a line is an event that the program's own logging may keep.
    """

    def __init__(self, path: Path | None = None, *, max_bytes: int = 0) -> None:
        """Write to `path`, moving it aside when it has grown past `max_bytes`; the last ten are kept."""
        self._path = path
        self._max_bytes = max_bytes
        self._lock = threading.Lock()

    @classmethod
    def at(cls, path: str, max_bytes: int) -> AuditLog:
        """Open the log that the settings name."""
        return cls(Path(path).expanduser() if path else None, max_bytes=max_bytes)

    def write(self, act: str, **fields: Any) -> None:
        """Write one line. Everything but ASCII is escaped: no name in it can break a line or colour a terminal."""
        emit("audit", act=act, **fields)
        if self._path is None:
            return
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "act": act, **fields}
        text = json.dumps(line, separators=(",", ":"), ensure_ascii=True, default=str) + "\n"
        with self._lock:
            self._rotate(self._path, len(text))
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, text.encode())
            finally:
                os.close(handle)

    def _rotate(self, path: Path, more: int) -> None:
        if not self._max_bytes or not path.exists() or path.stat().st_size + more <= self._max_bytes:
            return
        for number in range(_KEPT - 1, 0, -1):
            older = path.with_name(f"{path.name}.{number}")
            if older.exists():
                older.replace(path.with_name(f"{path.name}.{number + 1}"))
        path.replace(path.with_name(f"{path.name}.1"))


def read_audit(path: Path) -> Iterator[dict[str, Any]]:
    """Read the lines, oldest first, of the file and of those that were moved aside; a torn line is passed over."""
    older = [path.with_name(f"{path.name}.{number}") for number in range(_KEPT, 0, -1)]
    found = [item for item in (*older, path) if item.exists()]
    if not found:
        raise InputFileError(f"there is no audit log at {path}", hint="it begins with the first call")
    for item in found:
        with item.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    said = json.loads(line)
                except ValueError:
                    continue
                if isinstance(said, dict):
                    yield said
