"""Dates and durations as people write and read them: `90d`, `2027-01-01`, `3 hours ago`."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from toolscout.errors import InvalidValueError

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"([0-9]{1,6})([smhdw])")
_STEPS = ((86_400 * 2, 86_400, "days"), (3_600 * 2, 3_600, "hours"), (60 * 2, 60, "minutes"))


def since(text: str, option: str) -> float:
    """Return a past time, given as a duration (`1h`) or a date, in seconds since the epoch."""
    return _timestamp(text, option, -1)


def until(text: str, option: str) -> float:
    """Return a future time, given as a duration (`90d`) or a date. A time in the past is refused."""
    timestamp = _timestamp(text, option, 1)
    if timestamp <= time.time():
        raise InvalidValueError(f"{option} {text} is in the past", hint="give a time in the future, such as 90d")
    return timestamp


def iso_time(at: float | None) -> str | None:
    """Format a time for programs."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def ago(at: float | None, now: float | None = None) -> str:
    """Format a time for people: how long ago it was, or how long until then."""
    if at is None:
        return "never"
    distance = at - (time.time() if now is None else now)
    for least, size, unit in _STEPS:
        if abs(distance) >= least:
            count = f"{round(abs(distance) / size)} {unit}"
            return f"in {count}" if distance > 0 else f"{count} ago"
    return "soon" if distance > 0 else "just now"


def _timestamp(text: str, option: str, direction: int) -> float:
    duration = _DURATION.fullmatch(text.strip())
    if duration:
        return time.time() + direction * int(duration[1]) * _UNITS[duration[2]]
    try:
        date = datetime.fromisoformat(text.strip())
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidValueError(
            f"{option} must be a duration such as 90d, 12h, 30m or a date such as 2027-01-01, not {text!r}",
            hint="dates without a time zone are in UTC",
        ) from None
