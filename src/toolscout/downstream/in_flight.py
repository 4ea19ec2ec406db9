"""A request under way, and the one thing that must be known of it for certain: whether any of it was written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage

from toolscout.ports import Upstream

_ANSWER_S = 600.0

CURRENT_REQUEST: ContextVar[InFlightRequest | None] = ContextVar("call", default=None)


class NotSentError(Exception):
    """The connection was closed before the first byte of a request was written."""


class SendTracker:
    """A write stream that notes on each call whether it was handed to the transport."""

    def __init__(self, inner: Any) -> None:
        """Wrap a write stream."""
        self._inner = inner

    async def send(self, item: SessionMessage) -> None:
        """Hand a message to the transport."""
        call = CURRENT_REQUEST.get()
        if call is not None:
            call.sent = True
        try:
            await self._inner.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            if call is not None:
                call.sent = False
            raise

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        """Enter the stream."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the stream."""
        await self.aclose()


class InFlightRequest:
    """A request under way: whom to tell and ask, when it must end, and whether it may have reached the server."""

    def __init__(self, upstream: Upstream | None = None, headers: Mapping[str, str] | None = None) -> None:
        """Take the agent behind the call, if there is one, and headers that only this request carries."""
        self.upstream = upstream
        self.headers = dict(headers or {})
        self.sent = False
        self.clock: asyncio.Timeout | None = None
        self._latest: tuple[float, float | None, str | None] | None = None
        self._telling = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the deadline rest while the agent, or the human behind it, thinks about a question."""
        now = asyncio.get_running_loop().time
        until = self.clock.when() if self.clock else None
        left_s = until - now() if until is not None else None
        self._reschedule(None if left_s is None else now() + _ANSWER_S)
        try:
            yield
        finally:
            self._reschedule(None if left_s is None else now() + left_s)

    def _reschedule(self, when: float | None) -> None:
        if self.clock is not None and when is not None:
            with suppress(RuntimeError):  # the call has ended meanwhile
                self.clock.reschedule(when)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass progress on; what arrives faster than the agent takes it is represented by the latest."""
        self._latest = (progress, total, message)
        if self._telling or self.upstream is None:
            return
        self._telling = True
        try:
            while self._latest is not None:
                latest, self._latest = self._latest, None
                await self.upstream.progress(*latest)
        finally:
            self._telling = False
