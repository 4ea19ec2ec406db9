"""Bodies of answers: bounded in bytes, values and time, and read only as long as somebody waits for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import httpx2

from toolscout.downstream.in_flight import Attempt
from toolscout.downstream.pace import EVENT_LINE_S, PARSE_S, VALUE_S, Pace
from toolscout.jsonrpc_lines import MAX_VALUES, ValueCounter

_PIECE_BYTES = 16_384
_NOBODY_WAITS = "the answer does not end, and nobody waits for it any more"


class BodyError(httpx2.StreamError):
    """A body that is too long or breaks off. The SDK turns only this error into an error of one call."""


class BoundedBody(httpx2.AsyncByteStream):
    """A body that raises an error when it is longer, takes longer or has more values than allowed."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        attempt: Attempt,
        pace: Pace,
        *,
        max_bytes: int | None = None,
        most_s: float,
    ) -> None:
        """Take the attempt with whose end the reading ends, and the pace of the server. None bytes are no limit."""
        self._inner = inner
        self._attempt = attempt
        self._pace = pace
        self._max_bytes = max_bytes
        self._until = time.monotonic() + most_s
        self._values = ValueCounter()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body."""
        size = 0
        parts = aiter(self._inner)
        while part := await self._next(parts):
            size += len(part)
            if self._max_bytes is not None and size > self._max_bytes:
                raise BodyError(f"the answer has more than {self._max_bytes} bytes, which are not read")
            if time.monotonic() > self._until:
                raise BodyError(_NOBODY_WAITS)
            for at in range(0, len(part), _PIECE_BYTES):
                piece = part[at : at + _PIECE_BYTES]
                self._count(piece)
                if pause_s := self._pace.spend(self._cost_s(piece)):
                    await self._wait(pause_s)
                yield piece

    async def aclose(self) -> None:
        """Close the connection, or free it for the next request."""
        await self._inner.aclose()

    def _cost_s(self, piece: bytes) -> float:
        """Return how long it takes, about, to parse a piece."""
        return len(piece) * PARSE_S + piece.count(b",") * VALUE_S

    async def _wait(self, seconds: float) -> None:
        try:
            async with self._attempt.reading():
                await asyncio.sleep(seconds)
        except TimeoutError:
            raise self._abandoned() from None

    async def _next(self, parts: AsyncIterator[bytes]) -> bytes:
        """Return the next part that is not empty, or an empty one at the end."""
        try:
            async with self._attempt.reading():
                while not (part := await anext(parts, None)):
                    if part is None:
                        return b""
                return part
        except TimeoutError:
            raise self._abandoned() from None
        except httpx2.TransportError as error:
            raise BodyError(describe(error)) from error

    def _abandoned(self) -> Exception:
        return BodyError(_NOBODY_WAITS)

    def _count(self, part: bytes) -> None:
        if self._values.feed(part) > MAX_VALUES + len(part):
            raise BodyError(f"the answer has more than {MAX_VALUES} values, which are not read")


class EventBody(BoundedBody):
    """A stream of events. Each of them may have as many values as a whole body, and their number has no limit."""

    _after_newline = False

    def _cost_s(self, piece: bytes) -> float:
        return super()._cost_s(piece) + piece.count(b"\n") * EVENT_LINE_S

    def _abandoned(self) -> Exception:
        # After any other error, the SDK would ask the server for the rest of the stream.
        return httpx2.SSEError(_NOBODY_WAITS)

    def _count(self, part: bytes) -> None:
        super()._count(part)
        text = part.replace(b"\r", b"")
        if not text:
            return
        _, boundary, rest = (b"\n" * self._after_newline + text).rpartition(b"\n\n")
        if boundary:
            self._values = ValueCounter()
            self._values.feed(rest)
        self._after_newline = text.endswith(b"\n")


def describe(error: Exception) -> str:
    """Describe an error in words. The texts of httpx are not used because they may hold a URL with a secret."""
    if isinstance(error, httpx2.HTTPStatusError):
        return f"it answered {error.response.status_code}"
    kinds = (
        (httpx2.ConnectTimeout, "connecting to it took too long"),
        (httpx2.ConnectError, "cannot connect to it"),
        (httpx2.TimeoutException, "it did not answer in time"),
        (BodyError, str(error)),
    )
    return next(
        (text for kind, text in kinds if isinstance(error, kind)), f"the connection broke ({type(error).__name__})"
    )
