"""Log lines as JSON: one object a line, in ASCII, so that no name can break a line or colour a terminal."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from toolscout.telemetry.spans import trace_ids


class JsonFormatter(logging.Formatter):
    """Writes time, level, logger and message; an event with its fields; the trace, and the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "logger": record.name}
        event = getattr(record, "event", None)
        if event is None:
            line["message"] = record.getMessage()
        else:
            line |= {"event": event, "fields": getattr(record, "fields", {})}
        line |= trace_ids()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, separators=(",", ":"), ensure_ascii=True, default=str)
