"""JSON-RPC over pipes: bytes become lines of bounded length, lines become messages, and messages become lines.

The gateway uses it at both ends: on its own standard input and output, and on the pipes of the servers that it starts.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from types import TracebackType
from typing import Any, Final, Protocol, Self

import anyio
import pydantic_core
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter

MAX_VALUES: Final = 250_000
"""How many values one message may have. To parse them takes some hundredths of a second."""

_EXCERPT = 512
_STEP = 65_536
_QUEUE_HIGH, _QUEUE_LOW = 256, 32


class TooManyValuesError(ValueError):
    """A message has more values than are read."""


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line that was too long to keep: its size, and the first and last bytes of it."""

    size: int
    start: bytes
    end: bytes

    @classmethod
    def of(cls, line: bytes) -> SkippedLine:
        """Describe a line that is not read although it was kept."""
        return cls(len(line), line[:_EXCERPT], line[-_EXCERPT:])


class LineReader:
    """Cuts a stream of bytes into lines. It never buffers more than one line of the maximum length."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max = max_line_bytes
        self._buffer = BytesIO()
        self._start = b""
        self._end = b""
        self.skipped_bytes = 0
        """How many bytes of the current line were skipped because the line is too long."""

    @property
    def buffered_bytes(self) -> int:
        """How many bytes of an unfinished line are in memory."""
        return self._buffer.tell()

    def feed(self, data: bytes) -> list[bytes | SkippedLine]:
        """Take the bytes that were read and return the lines that are complete now, without blank ones."""
        if b"\n" not in data:  # found far faster than it is split
            self._extend(data)
            return []
        parts = data.split(b"\n")
        lines: list[bytes | SkippedLine] = []
        for part in parts[:-1]:
            line = self._complete(part) if self.buffered_bytes or self.skipped_bytes or len(part) > self._max else part
            if isinstance(line, SkippedLine) or (line and not line.isspace()):
                lines.append(line)
        self._extend(parts[-1])
        return lines

    def _extend(self, part: bytes) -> None:
        """Add to the unfinished line."""
        if self.skipped_bytes and len(part) >= _EXCERPT:
            self.skipped_bytes += len(part)
            self._end = part[-_EXCERPT:]
            return
        self._buffer.write(part)
        if self.skipped_bytes or self.buffered_bytes > self._max:
            line = self._take()
            if not self.skipped_bytes:
                self._start = line[:_EXCERPT]
            self.skipped_bytes += len(line)
            self._end = (self._end + line[-_EXCERPT:])[-_EXCERPT:]

    def _complete(self, part: bytes) -> bytes | SkippedLine:
        """Finish the line."""
        self._extend(part)
        if not self.skipped_bytes:
            return self._take()
        skipped = SkippedLine(self.skipped_bytes, self._start, self._end)
        self.skipped_bytes, self._start, self._end = 0, b"", b""
        return skipped

    def _take(self) -> bytes:
        """Return what is buffered, without a copy of it, and begin anew."""
        buffer, self._buffer = self._buffer, BytesIO()
        return buffer.getvalue()


class ValueCounter:
    """Counts the values of JSON without parsing it: a few bytes of it can become a hundred times as many in memory."""

    def __init__(self) -> None:
        self.count = 0
        self._in_string = False
        self._rest = b""

    def feed(self, data: bytes) -> int:
        """Take the next bytes and return how many values there are so far, give or take one."""
        data = self._rest + data
        complete = data.rstrip(b"\\")
        self._rest, data = data[len(complete) :], complete
        pieces = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self._in_string :: 2])
        self.count += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        self._in_string ^= len(pieces) % 2 == 0
        return self.count


def has_too_many_values(data: bytes) -> bool:
    """Return whether a message has more values than are read. It takes a few milliseconds for the largest."""
    if len(data) <= MAX_VALUES or data.count(b",") + data.count(b"[") + data.count(b"{") <= MAX_VALUES:
        return False
    counter = ValueCounter()
    return any(counter.feed(data[at : at + _STEP]) > MAX_VALUES for at in range(0, len(data), _STEP))


def decode_message(line: bytes) -> JSONRPCMessage:
    """Read one message. Bad UTF-8, bad JSON, nesting without end and too many values are all a ValueError."""
    if has_too_many_values(line):
        raise TooManyValuesError(f"it has more than {MAX_VALUES:,} values")
    with _without_collection(line):
        value = pydantic_core.from_json(line)
    return _response(value) or jsonrpc_message_adapter.validate_python(value, by_name=False)


@contextmanager
def _without_collection(line: bytes) -> Iterator[None]:
    """Look for no garbage while a long line is parsed: thousands of new values would make Python look many times."""
    if len(line) < _STEP or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _response(value: Any) -> JSONRPCResponse | None:
    """Build a response without validating its result, which is passed on untouched anyway."""
    if (
        type(value) is dict
        and value.get("jsonrpc") == "2.0"
        and type(value.get("id")) in (int, str)
        and type(value.get("result")) is dict
        and "method" not in value
    ):
        return JSONRPCResponse.model_construct(jsonrpc="2.0", id=value["id"], result=value["result"])
    return None


def encode_message(item: SessionMessage) -> bytes:
    """Write one message as a line."""
    return item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


class FlowControl(Protocol):
    """What messages come from: a transport, for instance."""

    def pause_reading(self) -> None:
        """Read no further."""

    def resume_reading(self) -> None:
        """Read on."""


class MessageQueue:
    """Messages that were received and wait for the SDK. While many wait, their source reads no further.

    The other side then blocks in its own write instead of filling our memory.
    """

    def __init__(self, source: Callable[[], FlowControl]) -> None:
        self._source = source
        self._messages: deque[JSONRPCMessage] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self.ended = False

    def put(self, message: JSONRPCMessage) -> None:
        """Add a message."""
        self._messages.append(message)
        if len(self._messages) > _QUEUE_HIGH and not self._paused:
            self._paused = True
            self._source().pause_reading()
        self._wake()

    def end(self) -> None:
        """Expect no further messages. Those that are queued can still be read."""
        self.ended = True
        self._wake()

    async def get(self) -> JSONRPCMessage:
        """Return the next message. Raise EndOfStream when there will be none."""
        while not self._messages:
            if self.ended:
                raise anyio.EndOfStream
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        message = self._messages.popleft()
        if self._paused and len(self._messages) < _QUEUE_LOW:
            self._paused = False
            self._source().resume_reading()
        return message

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class MessageStream:
    """A stream as the SDK expects it. Closing it leaves the pipe to its owner."""

    closed = False

    async def aclose(self) -> None:
        """Close the stream."""
        self.closed = True

    async def __aenter__(self) -> Self:
        """Enter the stream."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the stream."""
        await self.aclose()


class MessageReadStream(MessageStream):
    """The received messages as the SDK reads them."""

    def __init__(self, queue: MessageQueue) -> None:
        self._queue = queue

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. Raise EndOfStream when there will be none."""
        if self.closed:
            raise anyio.ClosedResourceError
        return SessionMessage(await self._queue.get())

    async def aclose(self) -> None:
        """Close the stream and wake its reader."""
        await super().aclose()
        self._queue.end()

    def __aiter__(self) -> Self:
        """Iterate over messages until the stream ends."""
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
