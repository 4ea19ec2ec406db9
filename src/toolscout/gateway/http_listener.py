"""Listening sockets, and uvicorn servers on them without uvicorn's own signal handlers and logs."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import h11
import uvicorn
from h11 import LocalProtocolError
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from toolscout.errors import SettingError

HEADERS_S = 20.0
"""How long the rest of a request may take once it has begun, its body included."""

KEPT_S = 650
"""How long an idle connection is kept: longer than load balancers do, so that none is closed while a request comes."""

_REFUSED_KEPT_S = 5
_JOINED_BYTES = 65_536
_ACCEPTED = "toolscout.accepted"
_ERROR = 400

_log = logging.getLogger("toolscout")


class SignalFreeServer(uvicorn.Server):
    """A uvicorn server without signal handlers: uvicorn raises signals again, so the process dies before cleanup."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield


class JoinedWrites:
    """A transport that sends headers and body together if they are written in one turn of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        """Return anything else from the transport itself."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data by the end of this turn, at once if it is much."""
        if not data:
            return
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size >= _JOINED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send what was written."""
        if self._parts:
            data, self._parts, self._size = b"".join(self._parts), [], 0
            self._transport.write(data)

    def close(self) -> None:
        """Send what was written, then close."""
        self.flush()
        self._transport.close()


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection on which a request began and does not go on, so that nobody can hold many."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        self._joined = JoinedWrites(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._joined))
        self._expect()

    def on_response_complete(self) -> None:
        """Send the response, and go on with the next request. After a refusal, the connection is not kept for long."""
        self._joined.flush()
        self.timeout_keep_alive = KEPT_S if _ACCEPTED in self.cycle.scope else _REFUSED_KEPT_S
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and wait for the rest of a request that they begin."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_waiting()
        if self._is_waiting():
            self._expect()

    def _is_waiting(self) -> bool:
        """Return whether a part of a request is missing: the rest of its headers, or of its body."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None:
            return True
        if cycle.response_complete:
            return bool(self.conn.trailing_data[0]) or self.conn.their_state is not h11.IDLE
        return bool(cycle.more_body)

    def _expect(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEADERS_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self._is_waiting() and not self.transport.is_closing():
            self.transport.close()


def make_server(app: ASGIApp, *, grace_s: int) -> SignalFreeServer:
    """Build the server of an application. When it stops, it waits `grace_s` for open requests."""
    config = uvicorn.Config(
        _marking_accepted(app),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        http=PatientProtocol,
        timeout_graceful_shutdown=grace_s,
    )
    return SignalFreeServer(config)


def _marking_accepted(app: ASGIApp) -> ASGIApp:
    """Mark requests that are not refused. Log no error when a client disconnects early or sends garbage after one."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < _ERROR:
                scope[_ACCEPTED] = True
            await send(message)

        try:
            await app(scope, receive, send_marked)
        except* (LocalProtocolError, ClientDisconnect):
            _log.debug("a client closed its connection early")

    return wrapped


@asynccontextmanager
async def serve_in_background(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Serve in the background until the end of the block."""
    server = make_server(app, grace_s=1)
    server_task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.gather(server_task, return_exceptions=True)


def bind(host: str, port: int) -> socket.socket:
    """Listen on an address, or raise SettingError with the reason."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without IPPROTO_TCP, asyncio does not set TCP_NODELAY.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise SettingError(f"cannot listen on {host}:{port}: {reason}", hint="choose another port") from error
    listener.listen(2_048)
    listener.setblocking(False)  # noqa: FBT003 - positional only
    return listener
