"""How fast is read what one server sends: it takes a small part of the gateway's time, so that no other server waits.

All servers are read in one thread. One that sends what nobody asked for, as fast as it can, would otherwise have most
of the time of that thread. Long answers and short bursts are within a reserve.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

REQUEST_S: Final = 0.000_5
"""How long it takes, about, to answer one request of a server."""

MESSAGE_S: Final = 0.000_05
"""How long it takes, about, to handle any other message, once it is decoded."""

EVENT_LINE_S: Final = 0.000_05
"""How long it takes, about, to read one line of a stream of events. A message has two."""

VALUE_S: Final = 0.000_001
"""How long it takes, about, to parse one value of an answer over HTTP."""

CONNECT_S: Final = 0.005
"""How long it takes, about, to open a stream of announcements."""

READ_S: Final = 0.000_000_000_25
"""How long it takes, about, to read one byte."""

PARSE_S: Final = 0.000_000_002
"""How long it takes, about, to read and parse one byte of an answer over HTTP."""

_SHARE, _RESERVE_S = 0.05, 0.25
"""The part of the time that one server may take for good, and what it may take at once beside that."""

_BURST_SHARE, _BURST_S = 0.25, 0.005
"""The same for some milliseconds, so that others have their turn in between."""

_SHORTEST_S = 0.01


class Pace:
    """How much work a server has caused, and when more is read of what it sends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with full reserves. `clock` is for tests."""
        self._clock = clock
        self._at = clock()
        self._left_s = _RESERVE_S
        self._burst_left_s = _BURST_S

    def spend(self, seconds: float) -> float:
        """Count work. Return for how long nothing is to be read, 0 for not at all."""
        now = self._clock()
        passed_s, self._at = now - self._at, now
        self._left_s = min(self._left_s + passed_s * _SHARE, _RESERVE_S) - seconds
        self._burst_left_s = min(self._burst_left_s + passed_s * _BURST_SHARE, _BURST_S) - seconds
        if self._left_s >= 0 and self._burst_left_s >= 0:
            return 0.0
        return max(-self._left_s / _SHARE, -self._burst_left_s / _BURST_SHARE, _SHORTEST_S)
