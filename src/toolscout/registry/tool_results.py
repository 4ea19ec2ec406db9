"""Results and errors of tools as the SDK's own servers write them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, InputRequiredResult, TextContent

from toolscout.errors import ToolscoutError
from toolscout.mcp_tools import error_result, meta_with_repairs

McpResult = CallToolResult | InputRequiredResult

_log = logging.getLogger("toolscout")


def with_repairs(result: McpResult, repairs: Sequence[str]) -> McpResult:
    """Add to the `_meta` of a result what was repaired in the arguments."""
    return result.model_copy(update={"meta": meta_with_repairs(result.meta, repairs)}) if repairs else result


def error_for_model(error: BaseException, name: str) -> CallToolResult:
    """Write an error as a result. The message is shown only if the error is meant for the model."""
    if isinstance(error, ToolscoutError):
        return CallToolResult.model_validate(error_result(error))
    message = author_message(error)
    if not message:
        _log.error("tool %r raised an unexpected exception", name, exc_info=error)
        message = f"Error executing tool {name}"
    return CallToolResult(content=[TextContent(text=message)], is_error=True)


def author_message(error: BaseException) -> str:
    """Return the message of an error that a tool raised for the model, or "" for any other exception."""
    if isinstance(error, UnexpectedToolError):
        cause = error.__cause__
        return f"{error}: {cause}" if isinstance(cause, _fastmcp_errors()) else ""
    return str(error) if isinstance(error, (ToolError, *_fastmcp_errors())) else ""


def _fastmcp_errors() -> tuple[type[BaseException], ...]:
    """Return FastMCP's own ToolError, if FastMCP is imported."""
    kind = getattr(sys.modules.get("fastmcp.exceptions"), "ToolError", None)
    return (kind,) if isinstance(kind, type) else ()
