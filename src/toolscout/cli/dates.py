"""Times as people write and read them: `90d`, `2027-01-01`, `3 hours ago`."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from toolscout.errors import InvalidValueError

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")
_STEPS = ((86_400 * 2, 86_400, "days"), (3_600 * 2, 3_600, "hours"), (60 * 2, 60, "minutes"))


def since(text: str, option: str) -> float:
    """Return the moment that lies a span back (`1h`), or that a date names, in seconds since the epoch."""
    return _moment(text, option, -1)


def until(text: str, option: str) -> float:
    """Return the moment that lies a span ahead (`90d`), or that a date names; one that has passed is refused."""
    found = _moment(text, option, 1)
    if found <= time.time():
        raise InvalidValueError(f"{option} {text} has passed already", hint="name a moment to come, such as 90d")
    return found


def stamp(at: float | None) -> str | None:
    """Write a moment for programs."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def ago(at: float | None, now: float | None = None) -> str:
    """Write a moment for people: how long ago, or how long until then."""
    if at is None:
        return "never"
    distance = at - (time.time() if now is None else now)
    for least, size, unit in _STEPS:
        if abs(distance) >= least:
            count = f"{round(abs(distance) / size)} {unit}"
            return f"in {count}" if distance > 0 else f"{count} ago"
    return "soon" if distance > 0 else "just now"


def _moment(text: str, option: str, direction: int) -> float:
    span = _SPAN.fullmatch(text.strip())
    if span:
        return time.time() + direction * int(span[1]) * _UNITS[span[2]]
    try:
        found = datetime.fromisoformat(text.strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidValueError(
            f"{option} is a span such as 90d, 12h, 30m or a date such as 2027-01-01, not {text!r}",
            hint="dates without a zone are in UTC",
        ) from None
