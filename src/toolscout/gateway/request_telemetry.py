"""Requests to the gateway belong to the trace that the client names. Those of MCP have a span and a duration."""

from __future__ import annotations

from mcp.server.context import CallNext, HandlerResult
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscout.gateway.client import Context
from toolscout.telemetry import Metrics
from toolscout.telemetry.mcp_operation import mcp_operation
from toolscout.telemetry.spans import continued_trace, remote_parent

_ENDLESS = "subscriptions/listen"
_MAX_ID = 64


class RequestTelemetry:
    """The outermost middleware of the SDK. It takes the place of the SDK's own spans, which hold texts of clients."""

    def __init__(self, metrics: Metrics) -> None:
        self._durations = metrics.mcp_server

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Record one request. The trace context in its `_meta` counts before that of its HTTP headers."""
        if ctx.request_id is None or ctx.method == _ENDLESS:
            return await call_next(ctx)
        headers = ctx.request.headers if ctx.request is not None else {}
        attributes: dict[str, str | int | bool] = {
            "jsonrpc.request.id": str(ctx.request_id)[:_MAX_ID],
            "mcp.protocol.version": ctx.protocol_version,
            "network.transport": "pipe" if ctx.request is None else "tcp",
        }
        if session := headers.get("mcp-session-id"):
            attributes["mcp.session.id"] = session
        parent = remote_parent(ctx.meta, headers)
        with mcp_operation(self._durations, ctx.method, attributes, kind="SERVER", parent=parent) as operation:
            result = await call_next(ctx)
            if isinstance(result, dict) and result.get("isError") is True:
                operation.fail("tool_error")
            return result


class TraceContext:
    """Middleware of HTTP that continues the trace of a request's headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request."""
        with continued_trace(remote_parent(Headers(scope=scope))):
            await self._app(scope, receive, send)
