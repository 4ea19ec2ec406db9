"""A circuit breaker: after several failures in a row calls fail at once, and after a pause one call is tried."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from toolscout.errors import ServerUnavailableError

_ALIVE_S = 5.0

BreakerState = Literal["closed", "open", "half_open"]


class CircuitBreaker:
    """The breaker of one server for one tenant: closed, open for some time, or half open while one call is tried."""

    def __init__(
        self, server: str, *, failures: int, pause_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Open after `failures` in a row, for `pause_s`. `clock` is for tests."""
        self._server = server
        self._limit = failures
        self._pause_s = pause_s
        self._clock = clock
        self._failures = 0
        self._opened_at = 0.0
        self._open_until = 0.0
        self._trying = False

    @property
    def failing(self) -> bool:
        """Whether the last call failed."""
        return self._failures > 0

    @property
    def open(self) -> bool:
        """Whether calls fail at once."""
        return self._failures >= self._limit and (self._trying or self._clock() < self._open_until)

    @property
    def state(self) -> BreakerState:
        """Whether calls pass, fail at once, or wait for the outcome of a trial."""
        if self._failures < self._limit:
            return "closed"
        return "open" if self.open and not self._trying else "half_open"

    def enter(self) -> bool:
        """Allow a call and return whether it is the trial call. Raise ServerUnavailableError while it is open."""
        if self.open:
            wait_s = max(self._open_until - self._clock(), 0.0)
            raise ServerUnavailableError(
                f"{self._server} failed {self._failures} times in a row; it is tried again in {wait_s:.0f} s",
                hint="nothing was sent; use another tool, or check the server with `toolscout doctor`",
            )
        self._trying = self._failures >= self._limit
        return self._trying

    def succeed(self) -> None:
        """Record an answer, which closes the breaker."""
        self._failures = 0
        self._trying = False

    def fail(self) -> None:
        """Record a failure of the server itself, not of a tool."""
        self._failures += 1
        self._trying = False
        if self._failures >= self._limit:
            self._opened_at = self._clock()
            self._open_until = self._opened_at + self._pause_s

    def note_alive(self) -> None:
        """Record that the server answers pings, so that a call is tried sooner, but not at once."""
        if self._failures >= self._limit:
            self._open_until = min(self._open_until, self._opened_at + _ALIVE_S)

    def leave(self) -> None:
        """Record the end of the trial call, even if it has neither failed nor succeeded."""
        self._trying = False
