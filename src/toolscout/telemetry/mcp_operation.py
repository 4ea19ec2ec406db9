"""One request of MCP, to the gateway or to a server: its span and its duration, named as OpenTelemetry names them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolscout.telemetry.exposition import Histogram
from toolscout.telemetry.metrics import error_label, method_label
from toolscout.telemetry.spans import Attributes, CurrentSpan, Kind, error_type_of, span

if TYPE_CHECKING:
    from opentelemetry.context import Context


@contextmanager
def mcp_operation(
    durations: Histogram, method: str, attributes: Attributes, *, kind: Kind, parent: Context | None = None
) -> Iterator[CurrentSpan]:
    """Record a request from here to the end of the block."""
    started, known = time.perf_counter(), method_label(method)
    with span(known, {"mcp.method.name": known, **attributes}, kind=kind, parent=parent) as current:
        try:
            yield current
        except BaseException as error:
            current.fail(error_type_of(error))
            raise
        finally:
            durations.observe(time.perf_counter() - started, known, error_label(current.error_type))


def describe_call(current: CurrentSpan, tool: str) -> None:
    """Say which tool a request calls. Only the name of a tool that exists is told."""
    current.rename(f"tools/call {tool}")
    current.set({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool})
