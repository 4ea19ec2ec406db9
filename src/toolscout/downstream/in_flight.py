"""A request under way, and whether any of it was written: what may have reached a server is never sent again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import Context, ContextVar
from dataclasses import dataclass
from typing import Any, Final, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, ErrorData, JSONRPCError, JSONRPCResponse

from toolscout.config import ServerConfig
from toolscout.jsonrpc_lines import MessageStream
from toolscout.ports import Upstream
from toolscout.settings import Settings

MAX_PAUSE_S: Final = 600.0
"""How long all questions of a server together may stop the deadline of one call."""

MAX_QUESTIONS: Final = 16
"""How many questions a server may ask during one call."""

_MAX_REPLIES = 64
_BROKEN_STREAM = "SSE stream "
"""How the SDK's errors for an event stream that broke off begin."""

CURRENT_REQUEST: ContextVar[InFlightRequest | None] = ContextVar("current_request", default=None)


def call_timeout_s(config: ServerConfig, settings: Settings) -> float:
    """Return how long a call to a server may take: its own `timeout_s`, or else `TOOLSCOUT_CALL_TIMEOUT_S`."""
    return settings.call_timeout_s if config.timeout_s is None else config.timeout_s


class NotSentError(Exception):
    """The connection was closed before the first byte of a request was written."""


class SendTracker(MessageStream):
    """A write stream that records on each request whether it was passed to the transport."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._replies = 0

    async def send(self, item: SessionMessage) -> None:
        """Pass a message to the transport. A server that asks and asks and reads no reply does not fill our memory."""
        if not isinstance(item.message, (JSONRPCResponse, JSONRPCError)):
            await self._send(item)
        elif self._replies < _MAX_REPLIES:
            self._replies += 1
            try:
                await self._send(item)
            finally:
                self._replies -= 1

    async def _send(self, item: SessionMessage) -> None:
        request = CURRENT_REQUEST.get()
        if request is not None:
            request.sent = True
        try:
            await self._inner.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            if request is not None:
                request.sent = False
            raise

    async def aclose(self) -> None:
        """Close the stream."""
        await super().aclose()
        await self._inner.aclose()


@dataclass(frozen=True, slots=True)
class SentByServer:
    """The data of an error that a server sent with the code that the SDK uses for a lost connection."""

    data: Any


class ReceiveTracker(MessageStream):
    """A read stream that marks such errors. The SDK's own are not read from it, or tell of a broken event stream."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def last_context(self) -> Context | None:
        """The context of the last message, which the SDK handles it in."""
        context: Context | None = getattr(self._inner, "last_context", None)
        return context

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. Raise EndOfStream when there will be none."""
        item: SessionMessage | Exception = await self._inner.receive()
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCError) and message.error.code == CONNECTION_CLOSED:
            error = message.error
            if not error.message.startswith(_BROKEN_STREAM):
                marked = ErrorData(code=error.code, message=error.message, data=SentByServer(error.data))
                return SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=marked))
        return item

    def __aiter__(self) -> Self:
        """Iterate over messages until the stream ends."""
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Close the stream."""
        await super().aclose()
        await self._inner.aclose()


class Attempt:
    """One sending of a request. Whatever still reads the answer stops when nobody waits for it any more."""

    def __init__(self) -> None:
        self.over = False
        self._reads: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Read a part of the answer. Raise TimeoutError when the attempt is over."""
        async with asyncio.timeout(0 if self.over else None) as read:
            self._reads.add(read)
            try:
                yield
            finally:
                self._reads.discard(read)

    def end(self) -> None:
        """Stop every read."""
        self.over = True
        for read in self._reads:
            read.reschedule(asyncio.get_running_loop().time())


class InFlightRequest:
    """A request under way: the agent behind it, its deadline, and whether it may have reached the server."""

    def __init__(self, upstream: Upstream | None = None, headers: Mapping[str, str] | None = None) -> None:
        """Take the agent behind the request, if there is one, and headers that only this request carries."""
        self.upstream = upstream
        self.headers = dict(headers or {})
        self.sent = False
        self.attempt = Attempt()
        self.deadline: asyncio.Timeout | None = None
        self.hide: Callable[[Any], Any] = lambda value: value
        """Hides the secrets that the server quotes in what it sends during the request."""
        self._questions = 0
        self._open_questions = 0
        self._pause_left_s = MAX_PAUSE_S
        self._remaining_s: float | None = None
        self._paused_at = 0.0
        self._latest: tuple[float, float | None, str | None] | None = None
        self._reporting = False

    def take_question(self) -> bool:
        """Count a question of the server and return whether it may still be asked."""
        self._questions += 1
        return self._questions <= MAX_QUESTIONS

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the deadline while the agent, or the person behind it, answers questions of the server.

        Overlapping questions are one pause. All pauses together never exceed `MAX_PAUSE_S`.
        """
        now = asyncio.get_running_loop().time
        self._open_questions += 1
        if self._open_questions == 1:
            end = self.deadline.when() if self.deadline else None
            self._remaining_s = None if end is None else end - now()
            self._paused_at = now()
            self._reschedule(self._paused_at + self._pause_left_s)
        try:
            yield
        finally:
            self._open_questions -= 1
            if self._open_questions == 0:
                self._pause_left_s = max(self._pause_left_s - (now() - self._paused_at), 0.0)
                self._reschedule(now() + (self._remaining_s or 0.0))

    def _reschedule(self, when: float) -> None:
        if self.deadline is not None and self._remaining_s is not None:
            with suppress(RuntimeError):  # the request has ended meanwhile
                self.deadline.reschedule(when)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass progress on. If the agent is slower than the server, it gets the latest report only."""
        self._latest = (progress, total, message)
        if self._reporting or self.upstream is None:
            return
        self._reporting = True
        try:
            while self._latest is not None:
                latest, self._latest = self._latest, None
                done, total, text = latest
                await self.upstream.progress(done, total, self.hide(text))
        finally:
            self._reporting = False
