"""Listening sockets, and uvicorn on them without its own handling of signals and logs."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from h11 import LocalProtocolError
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscout.errors import SettingError

_log = logging.getLogger("toolscout")


class SignalFreeServer(uvicorn.Server):
    """Leaves signals to us: uvicorn raises them again at the end, which kills the process before it has cleaned up."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield


def make_server(app: ASGIApp, *, grace_s: int) -> SignalFreeServer:
    """Build the server of an application; when it stops, it waits `grace_s` for open requests."""
    config = uvicorn.Config(
        _ignore_broken_clients(app),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=grace_s,
    )
    return SignalFreeServer(config)


def _ignore_broken_clients(app: ASGIApp) -> ASGIApp:
    """Do not log an error when a client disconnects early, or sends garbage after its request."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except* (LocalProtocolError, ClientDisconnect):
            _log.debug("a client broke its connection")

    return wrapped


@asynccontextmanager
async def serve_in_background(app: ASGIApp, listening: socket.socket) -> AsyncIterator[None]:
    """Serve in the background until the end of the block."""
    server = make_server(app, grace_s=1)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)


def bind(host: str, port: int) -> socket.socket:
    """Listen on an address, or raise SettingError with the reason."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only when it sees TCP.
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
