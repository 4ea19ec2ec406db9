"""Sending spans over OTLP. Where to, how many of them, and under which name, the `OTEL_*` variables say.

Sampling, batches and sending are those of OpenTelemetry's SDK. The spans are our own class: the SDK's span takes far
longer, because it bounds and locks whatever anybody may add. Ours takes what this package adds, and no text.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from time import time_ns
from typing import TYPE_CHECKING, Any

from toolscout.errors import SettingError
from toolscout.telemetry.spans import TRACER

try:
    from opentelemetry import propagate, trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import Decision
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    raise SettingError(
        "TOOLSCOUT_TRACES is on, but what sends spans is not installed",
        hint="install it: pip install 'toolscout[otlp]'",
    ) from None

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.util.types import Attributes, AttributeValue

_FLUSH_S = 2.0
_SAMPLED = Decision.RECORD_AND_SAMPLE
_SCOPE = InstrumentationScope(TRACER, version("toolscout"))


@contextmanager
def sent_spans() -> Iterator[None]:
    """Send the spans of this process until the end of the block. Then the last ones have two seconds.

    Libraries make spans of their own: the MCP SDK with the messages of errors, FastAPI with the query of an address.
    They are left out, because ours are about the same requests and hold no text. Baggage is neither read nor sent.
    """
    named = Resource({"service.name": "toolscout", "service.version": version("toolscout")})
    provider = OwnSpans(resource=named.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    provider.add_span_processor(provider.batches)
    trace.set_tracer_provider(provider)
    propagate.set_global_textmap(TraceContextTextMapPropagator())
    try:
        yield
    finally:
        # A collector that does not answer must not hold the end of the process.
        flush = threading.Thread(target=provider.shutdown, daemon=True)
        flush.start()
        flush.join(_FLUSH_S)


class OwnSpans(TracerProvider):
    """Gives a tracer to this package, and to every library one that makes no spans."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.batches = BatchSpanProcessor(OTLPSpanExporter())

    def get_tracer(self, instrumenting_module_name: str, *_args: Any, **_named: Any) -> trace.Tracer:
        """Return the tracer of a library."""
        return OwnTracer(self) if instrumenting_module_name == TRACER else trace.NoOpTracer()


class OwnTracer(trace.Tracer):
    """Starts spans. The sampler is asked once for each trace that begins or enters here."""

    def __init__(self, provider: OwnSpans) -> None:
        self._provider = provider

    def start_span(
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Attributes = None,
        *_args: Any,
        **_named: Any,
    ) -> trace.Span:
        """Start a span below the current one, or that of the context."""
        parent = trace.get_current_span(context).get_span_context()
        trace_id = parent.trace_id if parent.is_valid else random.getrandbits(128)
        flags = parent.trace_flags
        if parent.is_remote or not parent.is_valid:
            sampler = self._provider.sampler
            is_sampled = sampler.should_sample(context, trace_id, name, kind, attributes).decision is _SAMPLED
            flags = TraceFlags(TraceFlags.SAMPLED if is_sampled else TraceFlags.DEFAULT)
        own = SpanContext(trace_id, random.getrandbits(64), False, flags, parent.trace_state)  # noqa: FBT003
        if not flags.sampled:
            return NonRecordingSpan(own)
        return OwnSpan(self._provider, name, own, parent if parent.is_valid else None, kind, dict(attributes or {}))

    @contextmanager
    def start_as_current_span(self, name: str, *args: Any, **named: Any) -> Iterator[trace.Span]:  # type: ignore[override]
        """Run the block in a span."""
        with trace.use_span(self.start_span(name, *args, **named), end_on_exit=True) as started:
            yield started


class OwnSpan(ReadableSpan, trace.Span):
    """A span that holds a name, attributes and a status, and is sent as it is."""

    def __init__(
        self,
        provider: OwnSpans,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        kind: SpanKind,
        attributes: dict[str, AttributeValue],
    ) -> None:
        super().__init__(
            name,
            context,
            parent,
            provider.resource,
            attributes,
            kind=kind,
            start_time=time_ns(),
            instrumentation_scope=_SCOPE,
        )
        self._place = context
        self._added = attributes
        self._batches = provider.batches

    def get_span_context(self) -> SpanContext:
        """Return its place in the trace."""
        return self._place

    def is_recording(self) -> bool:
        """Tell whether it still lasts."""
        return self._end_time is None

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Set an attribute."""
        self._added[key] = value

    def set_attributes(self, attributes: Any) -> None:
        """Set attributes."""
        self._added.update(attributes)

    def update_name(self, name: str) -> None:
        """Rename it."""
        self._name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:  # noqa: ARG002
        """Set its status, without a description."""
        self._status = Status(status if isinstance(status, StatusCode) else status.status_code)

    def add_event(self, *_args: Any, **_named: Any) -> None:
        """Drop an event: it may hold a text."""

    def record_exception(self, *_args: Any, **_named: Any) -> None:
        """Drop an exception: its message is a text."""

    def end(self, end_time: int | None = None) -> None:
        """Send it."""
        if self._end_time is None:
            self._end_time = end_time or time_ns()
            self._batches.on_end(self)
