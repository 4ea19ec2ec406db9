"""Rate limits: calls per minute and concurrent calls. Each process counts its own calls."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

from toolscout.errors import LimitError
from toolscout.models import Caller
from toolscout.policy.policy_file import Limit, Policy

_MAX_BUCKETS = 10_000
_MINUTE_S = 60.0


@dataclass(slots=True)
class _Bucket:
    """A token bucket, which refills within a minute, and the number of running calls."""

    tokens: float
    refilled_at: float
    running: int = 0


class Limits:
    """Allows calls within the limits of a policy, and says when to try again if one is over a limit."""

    def __init__(self, policy: Policy | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy or Policy()
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, ...], _Bucket] = OrderedDict()

    def apply(self, policy: Policy | None) -> None:
        """Use the limits of another policy from now on. Earlier calls still count."""
        self._policy = policy or Policy()

    @contextmanager
    def call(self, caller: Caller, key: str) -> Iterator[None]:
        """Count one call while it runs. Raise LimitError if it exceeds a limit."""
        buckets = [
            (bucket, limit)
            for name, limit in self._limits_of(caller, key)
            if (bucket := self._bucket(name, limit)) is not None
        ]
        for bucket, limit in buckets:
            self._check(bucket, limit, key)
        for bucket, _ in buckets:
            bucket.tokens -= 1
            bucket.running += 1
        try:
            yield
        finally:
            for bucket, _ in buckets:
                bucket.running -= 1

    def _limits_of(self, caller: Caller, key: str) -> Iterator[tuple[tuple[str, ...], Limit]]:
        identity = ("key", caller.key) if caller.key else ("user", caller.user or "")
        yield ("caller", caller.tenant, *identity), self._policy.caller
        for glob, limit in self._policy.tools:
            if fnmatchcase(key.casefold(), glob.casefold()):
                yield ("tool", caller.tenant, key), limit
                return

    def _bucket(self, name: tuple[str, ...], limit: Limit) -> _Bucket | None:
        if limit == Limit():
            return None
        now, capacity = self._clock(), float(limit.calls_per_minute or 0)
        bucket = self._buckets.setdefault(name, _Bucket(tokens=capacity, refilled_at=now))
        bucket.tokens = min(capacity, bucket.tokens + (now - bucket.refilled_at) * capacity / _MINUTE_S)
        bucket.refilled_at = now
        self._buckets.move_to_end(name)
        # A plain LRU cache could evict a bucket whose calls still run, and so lift its limit.
        for old in list(self._buckets)[: max(len(self._buckets) - _MAX_BUCKETS, 0)]:
            if not self._buckets[old].running:
                del self._buckets[old]
        return bucket

    def _check(self, bucket: _Bucket, limit: Limit, key: str) -> None:
        if limit.concurrent_calls is not None and bucket.running >= limit.concurrent_calls:
            raise LimitError(
                f"{limit.concurrent_calls} calls are running, which is the limit; {key} was not called",
                hint="wait until one of them has finished",
                details={"retry_after_s": 1},
            )
        if limit.calls_per_minute is not None and bucket.tokens < 1:
            wait_s = math.ceil((1 - bucket.tokens) * _MINUTE_S / limit.calls_per_minute)
            raise LimitError(
                f"the limit of {limit.calls_per_minute} calls per minute is reached; {key} was not called",
                hint=f"try again in {wait_s} s",
                details={"retry_after_s": wait_s},
            )
