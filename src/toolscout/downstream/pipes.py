"""The pipes of a child process: lines become messages, messages lines, and standard error goes into a ring."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Self, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification

from toolscout.downstream.lines import LineReader

_QUEUE_HIGH, _QUEUE_LOW = 256, 32
_LAST_WORDS_S = 0.25


class Ring:
    """What is left of a process: the last bytes that it wrote to standard error, and how it ended."""

    def __init__(self, size: int) -> None:
        """Keep that many bytes."""
        self.ended = ""
        self._size = size
        self._parts: deque[bytes] = deque()
        self._length = 0

    def add(self, data: bytes) -> None:
        """Take more and forget the oldest."""
        self._parts.append(data[-self._size :] if self._size else b"")
        self._length += len(self._parts[-1])
        while self._length > self._size and self._length - len(self._parts[0]) >= self._size:
            self._length -= len(self._parts.popleft())

    def text(self, chars: int) -> str:
        """Return the end of what was kept."""
        return b"".join(self._parts)[-self._size :].decode("utf-8", "replace")[-chars:] if self._size else ""


class Child(asyncio.SubprocessProtocol):
    """The pipes of one process: lines become messages, standard error goes into a ring."""

    def __init__(self, reader: LineReader, errors: Ring) -> None:
        """Read lines with `reader`, and keep what is said on standard error."""
        self._reader = reader
        self._errors = errors
        self._transport: asyncio.SubprocessTransport
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self.queue: deque[JSONRPCMessage] = deque()
        self.ended = False
        self.exited = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the process."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    @property
    def stdin(self) -> asyncio.WriteTransport:
        """The process's standard input."""
        return cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    @property
    def stdout(self) -> asyncio.ReadTransport:
        """The process's standard output."""
        return cast("asyncio.ReadTransport", self._transport.get_pipe_transport(1))

    def pause_writing(self) -> None:
        """Note that the server does not read."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Note that it reads again."""
        self.writable.set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the server wrote."""
        if fd == 2:
            self._errors.add(data)
            return
        self.queue.extend(self._reader.feed(data))
        if self._reader.flooded:
            self.end()
        if len(self.queue) > _QUEUE_HIGH and not self._paused:
            # A server that writes faster than we read waits in its own write, not in our memory.
            self._paused = True
            self.stdout.pause_reading()
        self.wake()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - the interface's
        """Note that a pipe was closed."""
        if fd == 1:
            self.end()
        elif fd == 0:
            self.writable.set()

    def process_exited(self) -> None:
        """Note how the process ended."""
        code = self._transport.get_returncode() or 0
        self._errors.ended = f"exit {code}" if code >= 0 else f"signal {-code}"
        self.exited.set()
        # The last answer may still be in the pipe; a grandchild that holds the pipe open must not look like life.
        asyncio.get_running_loop().call_later(_LAST_WORDS_S, self.end)

    def end(self) -> None:
        """Expect nothing more of the server."""
        self.ended = True
        self.writable.set()
        self.wake()

    def wake(self) -> None:
        """Wake whoever waits for a message."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> JSONRPCMessage:
        """Return the next message; raise EndOfStream when there will be none."""
        while not self.queue:
            if self.ended:
                raise anyio.EndOfStream
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        message = self.queue.popleft()
        if self._paused and len(self.queue) < _QUEUE_LOW:
            self._paused = False
            self.stdout.resume_reading()
        return message


class _Stream:
    """What both ends share: they close at once, and the process is ended by whoever started it."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._closed = False

    async def aclose(self) -> None:
        self._closed = True
        self._child.wake()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class ReadEnd(_Stream):
    """Messages from the server."""

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message; garbage has been skipped."""
        if self._closed:
            raise anyio.ClosedResourceError
        return SessionMessage(await self._child.next())

    def __aiter__(self) -> Self:
        """Iterate over messages until the server is gone."""
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class WriteEnd(_Stream):
    """Messages to the server."""

    async def send(self, item: SessionMessage) -> None:
        """Write one message once; while a server does not read, requests wait before their first byte is written."""
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        if isinstance(item.message, JSONRPCNotification) and not self._child.writable.is_set():
            return
        await self._child.writable.wait()
        if self._closed:
            raise anyio.ClosedResourceError
        if self._child.ended or self._child.exited.is_set() or self._child.stdin.is_closing():
            raise anyio.BrokenResourceError
        self._child.stdin.write(line)
