"""What the program tells of itself: structured events through `logging`. What may not be told is left out here."""

from __future__ import annotations

import json
import logging
from typing import Any

_log = logging.getLogger("toolscout.events")
_log.addHandler(logging.NullHandler())  # a program that wants to hear them adds its own


def emit(event: str, **fields: Any) -> None:
    """Log one event: as JSON in the message, and as `event` and `fields` on the record for handlers that want data."""
    if _log.isEnabledFor(logging.INFO):
        told = json.dumps({"event": event, **fields}, separators=(",", ":"), ensure_ascii=True, default=str)
        _log.info("%s", told, extra={"event": event, "fields": fields})


def described(text: str, *, shown: bool) -> dict[str, Any]:
    """Describe a user's text by its length alone, unless the operator asked to see it."""
    return {"chars": len(text), "text": text} if shown else {"chars": len(text)}
