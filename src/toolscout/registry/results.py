"""Whatever a handler returns or raises, as the SDK's own server would write it."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, InputRequiredResult, TextContent

from toolscout.errors import ToolscoutError, to_wire

Result = CallToolResult | InputRequiredResult

REPAIRS = "toolscout/repairs"
"""Where a result says which slips in the arguments were repaired."""

_log = logging.getLogger("toolscout")


def with_repairs(result: Result, repairs: Sequence[str]) -> Result:
    """Note in a result what was repaired in the arguments."""
    if not repairs:
        return result
    meta = result.meta or {}
    return result.model_copy(update={"meta": {**meta, REPAIRS: [*repairs, *meta.get(REPAIRS, ())]}})


def failed(error: BaseException, name: str) -> CallToolResult:
    """Write an error for the model to read: one that was meant for it with its words, any other without."""
    if isinstance(error, ToolscoutError):
        body = to_wire(error)
        return CallToolResult(content=[_text(_compact(body))], structured_content=body, is_error=True)
    if words := meant(error):
        return CallToolResult(content=[_text(words)], is_error=True)
    _log.error("tool %r raised an unexpected exception", name, exc_info=error)
    return CallToolResult(content=[_text(f"Error executing tool {name}")], is_error=True)


def answered(listed: Sequence[Mapping[str, Any]], suggestions: Sequence[str]) -> CallToolResult:
    """Write the hits of a search as a JSON list, and as structured content; what to try instead where there is none."""
    content = [_text(_compact(list(listed))), *(_text(tip) for tip in suggestions)]
    structured: dict[str, Any] = {"tools": list(listed)}
    if suggestions:
        structured["suggestions"] = list(suggestions)
    return CallToolResult(content=list(content), structured_content=structured)


def meant(error: BaseException) -> str:
    """Return the words of an error that its author raised for the model; "" where it is a crash."""
    if isinstance(error, UnexpectedToolError):
        cause = error.__cause__
        return f"{error}: {cause}" if isinstance(cause, _foreign()) else ""
    return str(error) if isinstance(error, (ToolError, *_foreign())) else ""


def _foreign() -> tuple[type[BaseException], ...]:
    """Return FastMCP's own error of that kind, where FastMCP is in use."""
    kind = getattr(sys.modules.get("fastmcp.exceptions"), "ToolError", None)
    return (kind,) if isinstance(kind, type) else ()


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
