"""The call itself: once, within its deadline, and never again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from toolscout.execution.route import check_route
from toolscout.execution.validate import validate_arguments
from toolscout.models import Caller, CallResult, Tool
from toolscout.ports import ToolSource, Upstream


async def call(
    source: ToolSource,
    tool: Tool,
    arguments: Any,
    *,
    caller: Caller,
    version: str | None = None,
    read_only: bool = False,
    upstream: Upstream | None = None,
    extra: Mapping[str, Any] | None = None,
) -> CallResult:
    """Check that the call may go out, check its arguments, send it once, and return what came back."""
    started = time.perf_counter()
    check_route(tool, version=version, read_only=read_only)
    checked, repairs = validate_arguments(tool, arguments)
    result = await source.call_tool(tool.name, checked, caller=caller, upstream=upstream, extra=extra)
    return CallResult(tool=tool, result=result, repairs=repairs, took_ms=(time.perf_counter() - started) * 1_000)
