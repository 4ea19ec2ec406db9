"""The log of problems with tools and providers, which `ToolRegistry.problems` returns."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

from cachetools import LRUCache

_MAX_PROBLEMS = 200
_MAX_ONCE = 10_000
_log = logging.getLogger("toolscout")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderProblem:
    """One thing that went wrong: the provider that caused it, what happened, and when (UTC)."""

    provider: str
    what: str
    when: datetime


class ProblemLog:
    """The latest problems, oldest first. Of equal problems in a row, only the last is kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._problems: deque[ProviderProblem] = deque(maxlen=_MAX_PROBLEMS)
        self._reported_once: LRUCache[str, bool] = LRUCache(_MAX_ONCE)

    def report(self, provider: object, what: str) -> None:
        """Record a problem and log it as a warning."""
        problem = ProviderProblem(provider=provider_name(provider), what=what, when=datetime.now(UTC))
        with self._lock:
            last = self._problems[-1] if self._problems else None
            if last is not None and (last.provider, last.what) == (problem.provider, problem.what):
                self._problems.pop()
            self._problems.append(problem)
        _log.warning("%s: %s", problem.provider, what)

    def report_once(self, provider: object, what: str) -> None:
        """Report a problem only the first time. Each indexing would repeat it."""
        with self._lock:
            if what in self._reported_once:
                return
            self._reported_once[what] = True
        self.report(provider, what)

    def all(self) -> list[ProviderProblem]:
        """Return the problems."""
        with self._lock:
            return list(self._problems)


def provider_name(provider: object) -> str:
    """Return the `name` of a provider, or the name of its class."""
    if isinstance(provider, str):
        return provider
    name = getattr(provider, "name", None)
    return name if isinstance(name, str) and name else type(provider).__qualname__
