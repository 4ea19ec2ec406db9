"""Token buckets: each allows a number of uses in a minute and refills evenly."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

_MAX_BUCKETS = 10_000
_MINUTE_S = 60.0


@dataclass(slots=True)
class TokenBucket:
    """The uses that are left, and the number of calls that are running."""

    tokens: float
    refilled_at: float
    running: int = 0

    def wait_s(self, per_minute: int) -> int:
        """Return after how many seconds it may be used again, 0 for now."""
        return 0 if self.tokens >= 1 else math.ceil((1 - self.tokens) * _MINUTE_S / per_minute)


class TokenBuckets:
    """Token buckets by name. The least recently used ones are dropped, unless their calls are running."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, ...], TokenBucket] = OrderedDict()

    def get(self, name: tuple[str, ...], per_minute: int) -> TokenBucket:
        """Return a bucket, refilled up to now. A new one is full."""
        now, capacity = self._clock(), float(per_minute)
        bucket = self._buckets.setdefault(name, TokenBucket(tokens=capacity, refilled_at=now))
        bucket.tokens = min(capacity, bucket.tokens + (now - bucket.refilled_at) * capacity / _MINUTE_S)
        bucket.refilled_at = now
        self._buckets.move_to_end(name)
        # A plain LRU cache could evict a bucket whose calls still run, and so lift its limit.
        for old in list(islice(self._buckets, max(len(self._buckets) - _MAX_BUCKETS, 0))):
            if not self._buckets[old].running:
                del self._buckets[old]
        return bucket
