"""Structured events through `logging`. They contain no text of users, unless the operator allows it."""

from __future__ import annotations

import json
import logging
from typing import Any

_log = logging.getLogger("toolscout.events")
_log.addHandler(logging.NullHandler())  # a program that wants the events adds its own handler


def emit(event: str, **fields: Any) -> None:
    """Log one event, as JSON in the message and as `event` and `fields` of the log record."""
    if _log.isEnabledFor(logging.INFO):
        message = json.dumps({"event": event, **fields}, separators=(",", ":"), ensure_ascii=True, default=str)
        _log.info("%s", message, extra={"event": event, "fields": fields})


def described(text: str, *, shown: bool) -> dict[str, Any]:
    """Describe a user's text by its length, and include the text only if it may be `shown`."""
    return {"chars": len(text), "text": text} if shown else {"chars": len(text)}
