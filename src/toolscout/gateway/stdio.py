"""MCP on standard input and output, without threads: it ends on end of file, on SIGTERM and on SIGINT.

The SDK's own transport hands every line to a thread and back, and cannot be cancelled while it waits for one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCNotification, jsonrpc_message_adapter
from pydantic_core import from_json

from toolscout.gateway.server import Gateway

_FLUSH_S = 1.0


async def serve_stdio(gateway: Gateway, *, max_line_bytes: int) -> None:
    """Serve one client on standard input and output until it leaves or we are told to stop."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        if task:
            task.cancel()

    for name in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            loop.add_signal_handler(name, stop)
    try:
        async with gateway.running(), _streams(max_line_bytes) as (incoming, outgoing):
            await gateway.server.run(incoming, outgoing, gateway.server.create_initialization_options())
    except (asyncio.CancelledError, BaseExceptionGroup):
        if not stopped:
            raise
        if task:
            task.uncancel()


@asynccontextmanager
async def _streams(max_line_bytes: int) -> AsyncIterator[tuple[Any, Any]]:
    try:
        lines, writer, close = await _connect(max_line_bytes)
    except (ValueError, NotImplementedError):  # one of them is a regular file, or the loop knows no pipes
        for number in (0, 1):
            os.set_blocking(number, True)
        async with stdio_server() as streams:
            yield streams
        return
    try:
        yield _Incoming(lines), _Outgoing(writer)
    finally:
        with suppress(Exception):
            await asyncio.wait_for(writer.drain(), _FLUSH_S)
        close()


async def _connect(max_line_bytes: int) -> tuple[_Lines, asyncio.StreamWriter, Any]:
    """Take the wire for ourselves: a stray print, or a child, finds /dev/null and standard error in its place."""
    loop = asyncio.get_running_loop()
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    outgoing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(wire_out, "wb", 0))
    writer = asyncio.StreamWriter(outgoing, protocol, None, loop)
    lines = _Lines(max_line_bytes, writer)
    try:
        incoming, _ = await loop.connect_read_pipe(lambda: lines, os.fdopen(wire_in, "rb", 0))
    except ValueError:
        outgoing.abort()
        raise
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)

    def close() -> None:
        incoming.close()
        outgoing.close()

    return lines, writer, close


class _Lines(asyncio.Protocol):
    """Cuts what arrives into messages; a line that is none is answered with an error and skipped."""

    def __init__(self, max_line_bytes: int, writer: asyncio.StreamWriter) -> None:
        self.messages: deque[SessionMessage] = deque()
        self.ended = False
        self._max = max_line_bytes
        self._writer = writer
        self._buffer = bytearray()
        self._searched = 0
        self._skipping = False
        self._waiter: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        while (end := buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            self._searched = 0
            if self._skipping:
                self._skipping = False
            elif line.strip():
                self._read(line)
        self._searched = len(buffer)
        if len(buffer) > self._max:
            if not self._skipping:
                self._refuse(INVALID_REQUEST, "the message is too long")
            buffer.clear()
            self._searched, self._skipping = 0, True
        self.wake()

    def eof_received(self) -> None:
        self.ended = True
        self.wake()

    def connection_lost(self, _error: Exception | None) -> None:
        self.ended = True
        self.wake()

    def wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def more(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _read(self, line: bytes) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._refuse(PARSE_ERROR, "Parse error")
            return
        if isinstance(message, JSONRPCNotification) and "id" in from_json(line):
            self._refuse(INVALID_REQUEST, "the id is neither text nor a number")
        else:
            self.messages.append(SessionMessage(message))

    def _refuse(self, code: int, message: str) -> None:
        refusal = f'{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"{message}"}}}}\n'
        self._writer.write(refusal.encode())


class _Incoming:
    """The messages as the SDK reads them."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines
        self._closed = False

    async def receive(self) -> SessionMessage:
        while not self._lines.messages:
            if self._lines.ended or self._closed:
                raise anyio.EndOfStream
            await self._lines.more()
        return self._lines.messages.popleft()

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._closed = True
        self._lines.wake()

    async def __aenter__(self) -> _Incoming:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Outgoing:
    """The messages as the SDK writes them."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, item: SessionMessage) -> None:
        self._writer.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        await self._writer.drain()

    async def aclose(self) -> None:
        """Stay open: the transport closes the pipe."""

    async def __aenter__(self) -> _Outgoing:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
