"""Listening sockets, and uvicorn on them without its own ideas about signals and logs."""

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
    """Leaves signals to us: uvicorn would raise them again at the end, and kill the process before it has tidied up."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield


def make_server(app: ASGIApp, *, grace_s: int) -> SignalFreeServer:
    """Build the server of an application; once told to stop, it waits so long for open requests."""
    config = uvicorn.Config(
        _tolerant(app),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=grace_s,
    )
    return SignalFreeServer(config)


def _tolerant(app: ASGIApp) -> ASGIApp:
    """End quietly where a client left in the middle of its request, or sent nonsense behind it and got its 400."""

    async def tolerant(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except* (LocalProtocolError, ClientDisconnect):
            _log.debug("a client broke its own connection")

    return tolerant


@asynccontextmanager
async def serve_in_background(app: ASGIApp, listening: socket.socket) -> AsyncIterator[None]:
    """Serve beside something else until the end of the block."""
    server = make_server(app, grace_s=1)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)


def bind(host: str, port: int) -> socket.socket:
    """Listen on an address, or say why that cannot be."""
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
