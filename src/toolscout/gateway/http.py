"""MCP over streamable HTTP at `/mcp`, `/health`, and what else is mounted. The diagnostics have a port of their own."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscout.gateway.connect import ConnectPages, public_origin
from toolscout.gateway.denied import DeniedLog
from toolscout.gateway.diagnostics import Readiness, serve_diagnostics
from toolscout.gateway.host_check import AllowedHosts, HostCheck, allowed_hosts
from toolscout.gateway.http_limits import CallerLimit, RefusalLimit, Refusals, SessionManager
from toolscout.gateway.http_listener import bind, make_server
from toolscout.gateway.live_metrics import LiveMetrics
from toolscout.gateway.request_telemetry import TraceContext
from toolscout.gateway.server import Gateway
from toolscout.loopback import is_loopback
from toolscout.settings import Settings

if TYPE_CHECKING:
    from toolscout.gateway.auth.authentication import Authentication

Protect = Callable[[ASGIApp], ASGIApp]
"""A function that lets only verified callers reach an application."""

MakeApi = Callable[[Protect], ASGIApp]
"""A function that makes an application behind the authentication that it gets."""

MakePages = Callable[[Protect], Sequence[Route]]
"""A function that returns the routes of pages for people, of which it may protect some."""

_GRACE_S = 3
_log = logging.getLogger("toolscout")


class PrefixRoute(BaseRoute):
    """The application for all paths with a prefix. Unlike a pattern, it takes paths with line breaks in them too."""

    def __init__(self, prefix: str, app: ASGIApp) -> None:
        self._prefix = prefix
        self._app = app

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether a request is for the application."""
        matched = scope["type"] == "http" and scope["path"].startswith(self._prefix)
        return (Match.FULL if matched else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        await self._app(scope, receive, send)


def make_app(
    gateway: Gateway,
    settings: Settings,
    allowed: AllowedHosts,
    authentication: Authentication | None = None,
    api: MakeApi | None = None,
    pages: MakePages = lambda _protect: (),
) -> Starlette:
    """Build the application, which runs the gateway. With `authentication`, only verified callers reach `/mcp`.

    `api` gets what protects an application in the same way, and returns the one that answers all paths under `/api`.
    """
    manager = SessionManager(gateway.server, settings)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with gateway.running(), manager.run():
            yield

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    refusals = Refusals()

    def protect(app: ASGIApp) -> ASGIApp:
        if authentication is None:
            return app
        return RefusalLimit(authentication.wrap(app), authentication.verifier.asks_store, refusals)

    connect_pages: list[Route] = []
    if authentication is not None and settings.public_url:
        connect_pages = ConnectPages(gateway.scout, settings, authentication, refusals).routes()
    endpoint = protect(CallerLimit(StreamableHTTPASGIApp(manager), gateway.scout.access.count_request))
    return Starlette(
        routes=[
            Route("/mcp", endpoint=endpoint),
            Route("/health", health, methods=["GET"]),
            *(authentication.routes() if authentication else ()),
            *connect_pages,
            *pages(protect),
            *([PrefixRoute("/api/", TraceContext(api(protect)))] if api is not None else ()),
        ],
        middleware=[Middleware(DeniedLog), Middleware(HostCheck, allowed=allowed)],
        lifespan=lifespan,
    )


async def serve_http(
    gateway: Gateway,
    settings: Settings,
    *,
    host: str,
    port: int,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    diagnostics: tuple[str, int] | None = None,
    authentication: Authentication | None = None,
    api: MakeApi | None = None,
    pages: MakePages = lambda _protect: (),
    started: Callable[[str], None] = lambda _url: None,
    end_streams: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT. Open streams are closed first, then running calls have a few seconds to finish.

    `started` gets the address as soon as it is known, and `end_streams` ends the streams of the API.

    With a diagnostics port, SIGTERM makes the replica unready, but it still serves for `drain_s`. In that time a load
    balancer switches to other replicas. A second signal ends the wait.
    """
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(bind(host, port))
        port = listener.getsockname()[1]
        if public := public_origin(settings):
            origins = [*origins, public]
            hosts = [*hosts, urlsplit(public).netloc] if hosts or is_loopback(host) else hosts
        # Without a public address, the one that a browser uses is unknown. Callers authenticate, so any may be.
        own_origin = authentication is not None and not public
        allowed = allowed_hosts(host, port, more_hosts=hosts, more_origins=origins, own_origin=own_origin)
        server = make_server(make_app(gateway, settings, allowed, authentication, api, pages), grace_s=_GRACE_S)
        readiness = Readiness(gateway.scout)
        if diagnostics:
            diagnostics_port = await stack.enter_async_context(
                serve_diagnostics(
                    readiness, LiveMetrics(gateway, readiness).read, host=diagnostics[0], port=diagnostics[1]
                )
            )
            _log.info("diagnostics are served at http://%s/readyz", _address(diagnostics[0], diagnostics_port))
        loop = asyncio.get_running_loop()

        def finish(number: int) -> None:
            # The process ends, so nothing has to be collected. With thousands of sessions that would take seconds.
            gc.freeze()
            gateway.notifier.close()
            end_streams()
            server.handle_exit(number, None)

        def stop(number: int) -> None:
            wait_s = settings.drain_s if diagnostics and number == signal.SIGTERM and not readiness.stopping else 0
            readiness.stopping = True
            if wait_s:
                loop.call_later(wait_s, finish, number)
            else:
                finish(number)

        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, stop, number)
        _log.info("MCP is served at http://%s/mcp", _address(host, port))
        started(f"http://{_address(host, port)}")
        await server.serve(sockets=[listener])


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
