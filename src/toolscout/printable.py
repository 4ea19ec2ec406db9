"""Texts of servers on their way to a terminal or a log: no character of theirs moves the cursor or forges a line."""

from __future__ import annotations

import json
import logging
from typing import Any


def escape_controls(text: str, *, keep: str = "") -> str:
    """Write every character that a terminal may act on (C0, C1, bidi, invisible) as an escape sequence."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else repr(char)[1:-1] for char in text)


def escape_json(text: str) -> str:
    """Write those characters in a JSON text as JSON escapes. The value stays the same."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


class SafeFormatter(logging.Formatter):
    """A log formatter whose records are one line each, whatever they quote. Only a traceback has several."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Escape the message."""
        record.message = escape_controls(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Escape the traceback, line by line."""
        return escape_controls(super().formatException(ei), keep="\n")
