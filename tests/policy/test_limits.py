"""Rate limits: calls per minute, concurrent calls, and the time to retry."""

from __future__ import annotations

import pytest

from guarantees import guarantee
from toolscout import LimitError
from toolscout.models import Caller
from toolscout.policy.limits import Limits
from toolscout.policy.policy_file import parse_policy

pytestmark = guarantee("load:limits")
ANN, BOB = Caller(user="ann"), Caller(user="bob")


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def limits(text: str) -> tuple[Limits, Clock]:
    clock = Clock()
    return Limits(parse_policy(text), clock=clock), clock


def test_calls_per_minute_refill_evenly() -> None:
    counted, clock = limits("[limits]\ncalls_per_minute = 6")
    for _ in range(6):
        with counted.call(ANN, "a__x"):
            pass
    with pytest.raises(LimitError, match="the limit of 6 calls per minute") as caught, counted.call(ANN, "a__x"):
        pass
    assert caught.value.details == {"retry_after_s": 10}
    clock.now += 10
    with counted.call(ANN, "a__x"):
        pass
    with counted.call(BOB, "a__x"):
        pass


def test_a_key_is_counted_apart_from_its_user() -> None:
    counted, _ = limits("[limits]\ncalls_per_minute = 1")
    with counted.call(ANN, "a__x"):
        pass
    with counted.call(Caller(user="ann", key="k"), "a__x"):
        pass
    with counted.call(Caller(tenant="other", user="ann"), "a__x"):
        pass


def test_a_failed_call_no_longer_counts_as_concurrent() -> None:
    counted, _ = limits("[limits]\nconcurrent_calls = 1")
    with pytest.raises(ValueError, match="inside"), counted.call(ANN, "a__x"):
        with pytest.raises(LimitError, match="1 calls are running"), counted.call(ANN, "a__y"):
            pass
        raise ValueError("inside")
    with counted.call(ANN, "a__x"):
        pass


def test_a_tool_has_limits_of_its_own_for_all_callers_of_a_tenant() -> None:
    counted, _ = limits('[limits.tools]\n"bank__*" = { calls_per_minute = 1 }')
    for _ in range(3):
        with counted.call(ANN, "mail__send"):
            pass
    with counted.call(ANN, "bank__pay"):
        pass
    with pytest.raises(LimitError), counted.call(BOB, "bank__pay"):
        pass
    with counted.call(Caller(tenant="other"), "bank__pay"):
        pass


def test_a_call_that_one_limit_refuses_is_counted_by_no_other() -> None:
    counted, _ = limits('[limits]\ncalls_per_minute = 2\n[limits.tools]\n"a__x" = { concurrent_calls = 1 }')
    with counted.call(BOB, "a__x"):
        for _ in range(5):
            with pytest.raises(LimitError, match="1 calls are running"), counted.call(ANN, "a__x"):
                pass
    with counted.call(ANN, "a__y"):
        pass
    with counted.call(ANN, "a__y"):
        pass
