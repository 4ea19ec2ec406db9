"""A collector of spans: an OTLP receiver over HTTP on a local port, which keeps what it is sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {1: "internal", 2: "server", 3: "client"}


@dataclass(frozen=True, slots=True)
class CollectedSpan:
    """One span as it arrived."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    failed: bool
    said: str
    """The description of its status, and the text of its events."""


class Collector(ThreadingHTTPServer):
    """Receives spans. `received` holds the bodies."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[bytes] = []

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which a process sends its spans here, without delay."""
        return {
            "TOOLSCOUT_TRACES": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server_address[1]}",
            "OTEL_BSP_SCHEDULE_DELAY": "20",
        }

    @property
    def service(self) -> dict[str, str]:
        """Return what the sender says of itself."""
        (found, *_) = [group.resource for body in self.received for group in _parsed(body).resource_spans]
        return {item.key: item.value.string_value for item in found.attributes}

    def spans(self) -> list[CollectedSpan]:
        """Return all spans so far, in the order in which they ended."""
        return [
            CollectedSpan(
                name=item.name,
                kind=KINDS[item.kind],
                trace_id=item.trace_id.hex(),
                span_id=item.span_id.hex(),
                parent_id=item.parent_span_id.hex(),
                attributes={entry.key: _value(entry.value) for entry in item.attributes},
                failed=item.status.code == 2,
                said=item.status.message + "".join(map(str, item.events)),
            )
            for body in self.received
            for group in _parsed(body).resource_spans
            for scope in group.scope_spans
            for item in scope.spans
        ]

    def named(self, name: str) -> list[CollectedSpan]:
        """Return the spans of a name."""
        return [item for item in self.spans() if item.name == name]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.received.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def _parsed(body: bytes) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString(body)


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector until the end of the block."""
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield collector
        collector.shutdown()
        thread.join()
