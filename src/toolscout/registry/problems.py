"""What went wrong with somebody else's tools, kept for whoever looks: nothing is swallowed, nothing spreads."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

_REMEMBERED = 200
_log = logging.getLogger("toolscout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that went wrong: whose fault, what, and when (UTC)."""

    provider: str
    what: str
    when: datetime


class Problems:
    """The latest problems, oldest first; the same one in a row is logged again and kept once."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._kept: deque[Problem] = deque(maxlen=_REMEMBERED)

    def report(self, provider: object, what: str) -> None:
        """Keep a problem and log it as a warning."""
        problem = Problem(provider=name_of(provider), what=what, when=datetime.now(UTC))
        with self._lock:
            last = self._kept[-1] if self._kept else None
            if last is not None and (last.provider, last.what) == (problem.provider, problem.what):
                self._kept.pop()
            self._kept.append(problem)
        _log.warning("%s: %s", problem.provider, what)

    def all(self) -> list[Problem]:
        """Return what is remembered."""
        with self._lock:
            return list(self._kept)


def name_of(provider: object) -> str:
    """Name a provider as its author would: by its `name`, else by its class."""
    if isinstance(provider, str):
        return provider
    name = getattr(provider, "name", None)
    return name if isinstance(name, str) and name else type(provider).__qualname__
