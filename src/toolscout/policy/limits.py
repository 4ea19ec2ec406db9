"""Rate limits: HTTP requests and calls per minute, and concurrent calls. Each process counts its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase

from toolscout.errors import LimitError
from toolscout.models import Caller
from toolscout.policy.policy_file import Limit, Policy
from toolscout.policy.token_buckets import TokenBucket, TokenBuckets


class Limits:
    """Allows requests and calls within the limits of a policy, and says when to try again if one is over a limit."""

    def __init__(self, policy: Policy | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy or Policy()
        self._buckets = TokenBuckets(clock)

    def apply(self, policy: Policy | None) -> None:
        """Use the limits of another policy from now on. Earlier requests and calls still count."""
        self._policy = policy or Policy()

    def count_request(self, caller: Caller) -> None:
        """Count one HTTP request of any kind. Raise LimitError if it exceeds the limit."""
        per_minute = self._policy.requests_per_minute
        if per_minute is None:
            return
        bucket = self._buckets.get(("requests", *_identity(caller)), per_minute)
        _check_rate(bucket, per_minute, "requests", "the request was not read")
        bucket.tokens -= 1

    @contextmanager
    def call(self, caller: Caller, key: str) -> Iterator[None]:
        """Count one call while it runs. Raise LimitError if it exceeds a limit."""
        buckets = [
            (self._buckets.get(name, limit.calls_per_minute or 0), limit)
            for name, limit in self._limits_of(caller, key)
            if limit != Limit()
        ]
        for bucket, limit in buckets:
            _check(bucket, limit, key)
        for bucket, _ in buckets:
            bucket.tokens -= 1
            bucket.running += 1
        try:
            yield
        finally:
            for bucket, _ in buckets:
                bucket.running -= 1

    def _limits_of(self, caller: Caller, key: str) -> Iterator[tuple[tuple[str, ...], Limit]]:
        yield ("caller", *_identity(caller)), self._policy.caller
        for glob, limit in self._policy.tools:
            if fnmatchcase(key.casefold(), glob.casefold()):
                yield ("tool", caller.tenant, key), limit
                return


def _identity(caller: Caller) -> tuple[str, str, str]:
    return (caller.tenant, "key", caller.key) if caller.key else (caller.tenant, "user", caller.user or "")


def _check(bucket: TokenBucket, limit: Limit, key: str) -> None:
    if limit.concurrent_calls is not None and bucket.running >= limit.concurrent_calls:
        raise LimitError(
            f"{limit.concurrent_calls} calls are running, which is the limit; {key} was not called",
            hint="wait until one of them has finished",
            details={"retry_after_s": 1},
        )
    if limit.calls_per_minute is not None:
        _check_rate(bucket, limit.calls_per_minute, "calls", f"{key} was not called")


def _check_rate(bucket: TokenBucket, per_minute: int, what: str, consequence: str) -> None:
    wait_s = bucket.wait_s(per_minute)
    if wait_s:
        raise LimitError(
            f"the limit of {per_minute} {what} per minute is reached; {consequence}",
            hint=f"try again in {wait_s} s",
            details={"retry_after_s": wait_s},
        )
