"""The last lines of the audit log, as a page shows them, and new lines as they come."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

_KEPT_LINES = 10_000
_TAIL_BYTES = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityFilter:
    """Which lines to show. An empty field fits all."""

    tenant: str | None = None
    user: str | None = None
    tool: str | None = None
    """A part of the key."""
    act: str | None = None
    outcome: str | None = None

    def fits(self, line: dict[str, Any]) -> bool:
        """Tell whether a line is wanted."""
        equal = {"tenant": self.tenant, "user": self.user, "act": self.act, "outcome": self.outcome}
        if any(value is not None and line.get(name) != value for name, value in equal.items()):
            return False
        return self.tool is None or self.tool.casefold() in str(line.get("tool") or "").casefold()


class Activity:
    """The last lines of an audit log. Other processes may write to the same file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lines: deque[dict[str, Any]] = deque(maxlen=_KEPT_LINES)
        self._count = 0
        self._position: int | None = None
        self._lock = threading.Lock()

    @property
    def recorded(self) -> bool:
        """Whether there is a log to read."""
        return self._path is not None

    async def last(self, narrow: ActivityFilter) -> list[dict[str, Any]]:
        """Return the lines at the end of the log that fit, newest first."""
        await asyncio.to_thread(self._read_new)
        return [line for line in reversed(self._lines) if narrow.fits(line)]

    def outcomes(self) -> list[str]:
        """Return how the calls ended of which lines were read."""
        return sorted({str(line["outcome"]) for line in tuple(self._lines) if line.get("outcome")})

    async def after(self, count: int | None, narrow: ActivityFilter) -> tuple[list[dict[str, Any]], int]:
        """Return the lines that were read after the first `count`, oldest first, and how many were read until now.

        Without a count, no line is returned.
        """
        await asyncio.to_thread(self._read_new)
        new = 0 if count is None else min(self._count - count, len(self._lines))
        lines = list(islice(self._lines, len(self._lines) - new, None))
        return [line for line in lines if narrow.fits(line)], self._count

    def _read_new(self) -> None:
        """Read what was written since the last time. The first time it is the end of the log."""
        if self._path is None:
            return
        with self._lock:
            size = _size(self._path)
            if self._position is None:
                before = self._path.with_name(f"{self._path.name}.1")
                self._keep(_read_from(before, max(_size(before) - _TAIL_BYTES, 0))[0])
                self._position = max(size - _TAIL_BYTES, 0)
            elif size < self._position:  # it is a new file
                self._position = 0
            while self._position < size:
                lines, position = _read_from(self._path, self._position)
                if position == self._position:
                    break
                self._keep(lines)
                self._position = position

    def _keep(self, lines: list[dict[str, Any]]) -> None:
        self._lines.extend(lines)
        self._count += len(lines)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read_from(path: Path, position: int) -> tuple[list[dict[str, Any]], int]:
    """Return the whole lines behind a position, and the position behind them."""
    try:
        with path.open("rb") as file:
            file.seek(position)
            data = file.read(_TAIL_BYTES)
    except OSError:
        return [], position
    end = data.rfind(b"\n") + 1
    return list(_parse(data[:end].split(b"\n"))), position + end


def _parse(lines: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row
