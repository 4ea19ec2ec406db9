"""MCP on standard input and output, without threads. It ends at the end of the input, on SIGTERM and on SIGINT.

The SDK's own transport reads every line in a thread, and cannot be cancelled while it waits for one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCNotification
from pydantic_core import from_json

from toolscout.gateway.server import Gateway
from toolscout.jsonrpc_lines import (
    LineReader,
    MessageQueue,
    MessageReadStream,
    MessageStream,
    SkippedLine,
    decode_message,
    encode_message,
)

_FLUSH_S = 1.0


async def serve_stdio(gateway: Gateway, *, max_line_bytes: int) -> None:
    """Serve one client on standard input and output until it disconnects or a signal arrives."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        if task:
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)
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
        messages, writer, close = await _connect(max_line_bytes)
    except (ValueError, NotImplementedError):  # one of them is a regular file, or the event loop has no pipes
        for number in (0, 1):
            os.set_blocking(number, True)
        async with stdio_server() as streams:
            yield streams
        return
    try:
        yield MessageReadStream(messages), _OutputStream(writer)
    finally:
        with suppress(Exception):
            await asyncio.wait_for(writer.drain(), _FLUSH_S)
        close()


async def _connect(max_line_bytes: int) -> tuple[MessageQueue, asyncio.StreamWriter, Callable[[], None]]:
    """Open both pipes for MCP alone: a stray print and child processes get standard error and /dev/null instead."""
    loop = asyncio.get_running_loop()
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    outgoing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(wire_out, "wb", 0))
    writer = asyncio.StreamWriter(outgoing, protocol, None, loop)
    protocol_in = _Input(max_line_bytes, writer)
    try:
        incoming, _ = await loop.connect_read_pipe(lambda: protocol_in, os.fdopen(wire_in, "rb", 0))
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

    return protocol_in.messages, writer, close


class _Input(asyncio.Protocol):
    """Standard input. A line that is not a message is answered with an error and skipped."""

    def __init__(self, max_line_bytes: int, writer: asyncio.StreamWriter) -> None:
        self._reader = LineReader(max_line_bytes)
        self._writer = writer
        self._transport: asyncio.ReadTransport
        self.messages = MessageQueue(lambda: self._transport)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        for line in self._reader.feed(data):
            if isinstance(line, SkippedLine):
                self._refuse(INVALID_REQUEST, "the message is too long")
            else:
                self._read(line)

    def eof_received(self) -> None:
        self.messages.end()

    def connection_lost(self, _error: Exception | None) -> None:
        self.messages.end()

    def _read(self, line: bytes) -> None:
        try:
            message = decode_message(line)
        except ValueError:
            self._refuse(PARSE_ERROR, "Parse error")
            return
        if isinstance(message, JSONRPCNotification) and "id" in from_json(line):
            self._refuse(INVALID_REQUEST, "the id must be text or a number")
        else:
            self.messages.put(message)

    def _refuse(self, code: int, message: str) -> None:
        response = f'{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"{message}"}}}}\n'
        self._writer.write(response.encode())


class _OutputStream(MessageStream):
    """Standard output, as the stream that the SDK sends messages to."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, item: SessionMessage) -> None:
        self._writer.write(encode_message(item))
        await self._writer.drain()
