"""A circuit breaker: after several failures in a row, calls fail at once; after a pause, one is let through to see."""

from __future__ import annotations

import time
from collections.abc import Callable

from toolscout.errors import ServerUnavailableError


class CircuitBreaker:
    """The state of one server: closed, open until a moment, or half open while one call tries."""

    def __init__(
        self, server: str, *, failures: int, pause_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Open after `failures` in a row, for `pause_s`; `clock` is there for tests."""
        self._server = server
        self._limit = failures
        self._pause_s = pause_s
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0
        self._trying = False

    @property
    def open(self) -> bool:
        """Whether calls fail at once now."""
        return self._failures >= self._limit and (self._trying or self._clock() < self._open_until)

    def enter(self) -> bool:
        """Ask to make a call and learn whether it is the one that tries; raise where the server is known to fail."""
        if self.open:
            left = max(self._open_until - self._clock(), 0.0)
            raise ServerUnavailableError(
                f"{self._server} failed {self._failures} times in a row; it is tried again in {left:.0f} s",
                hint="use another tool, or look at the server with `toolscout doctor`; nothing was sent",
            )
        self._trying = self._failures >= self._limit
        return self._trying

    def succeed(self) -> None:
        """Note an answer: the server is there."""
        self._failures = 0
        self._trying = False

    def fail(self) -> None:
        """Note a failure of the server itself, not of a tool."""
        self._failures += 1
        self._trying = False
        if self._failures >= self._limit:
            self._open_until = self._clock() + self._pause_s

    def leave(self) -> None:
        """Note that the call which tried has ended, also when it said nothing about the server."""
        self._trying = False
