"""MCP over streamable HTTP at `/mcp`, and `/health` beside it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from toolscout.errors import SettingError
from toolscout.gateway.guard import Allowed, Guard, allowed_for
from toolscout.gateway.server import Gateway
from toolscout.settings import Settings

_GRACE_S = 3
_log = logging.getLogger("toolscout")


def make_app(gateway: Gateway, settings: Settings, allowed: Allowed) -> Starlette:
    """Build the application; it runs the gateway for as long as it is served."""
    manager = StreamableHTTPSessionManager(app=gateway.server, max_request_body_size=settings.max_body_bytes)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with gateway.running(), manager.run():
            yield

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "version": gateway.server.version})

    return Starlette(
        routes=[Route("/mcp", endpoint=StreamableHTTPASGIApp(manager)), Route("/health", health, methods=["GET"])],
        middleware=[Middleware(Guard, allowed=allowed)],
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
) -> None:
    """Serve until SIGTERM or SIGINT; open streams are ended first, then calls have a few seconds."""
    listening = _bind(host, port)
    port = listening.getsockname()[1]
    allowed = allowed_for(host, port, more_hosts=hosts, more_origins=origins)
    config = uvicorn.Config(
        make_app(gateway, settings, allowed),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Uvicorn(config)
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        gateway.announcer.close()
        server.handle_exit(number, None)

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop, number)
    _log.info("MCP is served at http://%s/mcp", f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    with listening:
        await server.serve(sockets=[listening])


class _Uvicorn(uvicorn.Server):
    """Leaves signals to us: uvicorn would raise them again at the end, and kill the process before it has tidied up."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, so that asyncio sees TCP and switches delayed sending off.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise SettingError(f"cannot listen on {host}:{port}: {reason}", hint="choose another port") from error
    listening.listen(2_048)
    listening.setblocking(False)  # noqa: FBT003 - it takes no name
    return listening
