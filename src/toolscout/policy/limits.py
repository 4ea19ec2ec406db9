"""How much a caller may do: calls in a minute, calls at once. Each process counts for itself."""

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

_MOST_BUCKETS = 10_000
_MINUTE_S = 60.0


@dataclass(slots=True)
class _Bucket:
    """Tokens that come back evenly over a minute, and the calls that run now."""

    tokens: float
    at: float
    running: int = 0


class Limits:
    """Lets calls through, or says when to come again."""

    def __init__(self, policy: Policy | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing counted."""
        self._policy = policy or Policy()
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, ...], _Bucket] = OrderedDict()

    def apply(self, policy: Policy | None) -> None:
        """Count by another policy from now on; what was counted stays counted."""
        self._policy = policy or Policy()

    @contextmanager
    def call(self, caller: Caller, key: str) -> Iterator[None]:
        """Count one call for as long as it runs; raise LimitError when it is one too many."""
        counted = [
            (bucket, limit)
            for name, limit in self._about(caller, key)
            if (bucket := self._bucket(name, limit)) is not None
        ]
        for bucket, limit in counted:
            self._check(bucket, limit, key)
        for bucket, _ in counted:
            bucket.tokens -= 1
            bucket.running += 1
        try:
            yield
        finally:
            for bucket, _ in counted:
                bucket.running -= 1

    def _about(self, caller: Caller, key: str) -> Iterator[tuple[tuple[str, ...], Limit]]:
        who = ("key", caller.key) if caller.key else ("user", caller.user or "")
        yield ("caller", caller.tenant, *who), self._policy.caller
        for glob, limit in self._policy.tools:
            if fnmatchcase(key, glob):
                yield ("tool", caller.tenant, key), limit
                return

    def _bucket(self, name: tuple[str, ...], limit: Limit) -> _Bucket | None:
        if limit == Limit():
            return None
        now, full = self._clock(), float(limit.calls_per_minute or 0)
        bucket = self._buckets.setdefault(name, _Bucket(tokens=full, at=now))
        bucket.tokens = min(full, bucket.tokens + (now - bucket.at) * full / _MINUTE_S)
        bucket.at = now
        self._buckets.move_to_end(name)
        for old in list(self._buckets)[: max(len(self._buckets) - _MOST_BUCKETS, 0)]:
            if not self._buckets[old].running:
                del self._buckets[old]
        return bucket

    def _check(self, bucket: _Bucket, limit: Limit, key: str) -> None:
        if limit.concurrent_calls is not None and bucket.running >= limit.concurrent_calls:
            raise LimitError(
                f"{limit.concurrent_calls} calls run already; {key} was not called",
                hint="wait until one of them has ended",
                details={"retry_after_s": 1},
            )
        if limit.calls_per_minute is not None and bucket.tokens < 1:
            wait_s = math.ceil((1 - bucket.tokens) * _MINUTE_S / limit.calls_per_minute)
            raise LimitError(
                f"more than {limit.calls_per_minute} calls in a minute; {key} was not called",
                hint=f"try again in {wait_s} s",
                details={"retry_after_s": wait_s},
            )
