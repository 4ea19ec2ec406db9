"""Spans: what one request did, and how long each part of it took.

A program that traces has loaded OpenTelemetry. Where it is not loaded, nothing is recorded, and nothing is imported.
No span holds the value of an argument, a result, or the message of an error.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from toolscout.errors import ToolscoutError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

Kind = Literal["INTERNAL", "SERVER", "CLIENT"]
Attributes = Mapping[str, str | int | bool]

TRACER = "toolscout"
"""The name of our spans' instrumentation."""

_API = "opentelemetry.trace"


class CurrentSpan:
    """What can be said of a span while it lasts. If nobody records it, nothing happens."""

    def __init__(self, recorded: Span | None = None) -> None:
        self._recorded = recorded
        self.error_type = ""
        """Why the operation failed, as a word or a code, or "" if it did not."""

    def set(self, attributes: Attributes) -> None:
        """Add attributes."""
        if self._recorded is not None:
            self._recorded.set_attributes(attributes)

    def rename(self, name: str) -> None:
        """Name the span, once it is known what for."""
        if self._recorded is not None:
            self._recorded.update_name(name)

    def fail(self, error_type: str) -> None:
        """Mark the operation as failed. What was said first counts."""
        self.error_type = self.error_type or error_type


@contextmanager
def span(
    name: str, attributes: Attributes | None = None, *, kind: Kind = "INTERNAL", parent: Context | None = None
) -> Iterator[CurrentSpan]:
    """Run the block in a span, below the current one or below `parent`. An exception marks it as failed."""
    current = CurrentSpan()
    if _API not in sys.modules:
        yield current
        return
    from opentelemetry import context, trace

    started = _tracer().start_span(
        name,
        context=parent,
        kind=trace.SpanKind[kind],
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    )
    recorded = started.is_recording()
    if recorded:
        current = CurrentSpan(started)
    token = context.attach(trace.set_span_in_context(started, parent)) if recorded or parent is not None else None
    try:
        yield current
    except BaseException as error:
        current.fail(error_type_of(error))
        raise
    finally:
        if recorded and current.error_type:
            started.set_attribute("error.type", current.error_type)
            started.set_status(trace.StatusCode.ERROR)
        if token is not None:
            context.detach(token)
        started.end()


@cache
def _tracer() -> Tracer:
    from opentelemetry import trace

    return trace.get_tracer(TRACER)


def current_span() -> CurrentSpan:
    """Return the innermost span that lasts now."""
    if _API not in sys.modules:
        return CurrentSpan()
    from opentelemetry import trace

    return CurrentSpan(trace.get_current_span())


def error_type_of(error: BaseException) -> str:
    """Name the class of an error: its code, or else the name of its type."""
    if isinstance(error, ToolscoutError):
        return error.code
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    code = getattr(getattr(error, "error", None), "code", None)  # an error of the protocol
    return str(code) if isinstance(code, int) else type(error).__name__


def remote_parent(*carriers: Mapping[str, Any] | None) -> Context | None:
    """Return the trace context of the first carrier that has a valid `traceparent`, as in headers and `_meta`."""
    if _API not in sys.modules:
        return None
    for carrier in carriers:
        traceparent = carrier.get("traceparent") if carrier else None
        if not isinstance(traceparent, str):
            continue
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        fields = {"traceparent": traceparent, "tracestate": str((carrier or {}).get("tracestate") or "")}
        found = TraceContextTextMapPropagator().extract(fields)
        if trace.get_current_span(found).get_span_context().is_remote:
            return found
    return None


@contextmanager
def continued_trace(parent: Context | None) -> Iterator[None]:
    """Run the block below a remote parent, if there is one."""
    if parent is None:
        yield
        return
    from opentelemetry import context

    token = context.attach(parent)
    try:
        yield
    finally:
        context.detach(token)


def leave_trace() -> None:
    """Begin anew in a task that outlives the request that started it."""
    if _API in sys.modules:
        from opentelemetry import context

        context.attach(context.Context())


def trace_headers() -> dict[str, str]:
    """Return the headers that continue the current trace at another server."""
    headers: dict[str, str] = {}
    if _API in sys.modules:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(headers)
    return headers


def trace_ids() -> dict[str, str]:
    """Return the ids of the current trace and span, as logs name them, or nothing."""
    if _API not in sys.modules:
        return {}
    from opentelemetry import trace

    current = trace.get_current_span().get_span_context()
    if not current.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(current.trace_id), "span_id": trace.format_span_id(current.span_id)}
