"""What every write passes: its body is bounded, and with an Idempotency-Key it is done once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from cachetools import TTLCache
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscout.api.callers import CONSOLE_OPERATOR
from toolscout.api.problems import problem
from toolscout.errors import (
    OUTCOME_UNKNOWN,
    AuditError,
    CheckUnavailableError,
    ConflictError,
    InvalidValueError,
    ServerUnavailableError,
)
from toolscout.gateway.identity import verified_caller
from toolscout.models import Caller

KEPT_S = 24 * 3_600.0
"""How long the answer to a write is kept."""

KEPT_BYTES = 64_000_000
"""How much memory the answers may take. The oldest are dropped first."""

LONGEST_KEY = 255
"""How many characters an Idempotency-Key may have."""

_ENTRY_BYTES = 1_000
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_REFUSED = range(400, 500)
_UNAVAILABLE = 503
_NOTHING_DONE = frozenset(kind.code for kind in (ServerUnavailableError, CheckUnavailableError, AuditError))
"""The errors with status 503 after which nothing was done. A store may have lost the answer to what it did."""
_TOO_LARGE = 413

Place = tuple[object, ...]


@dataclass(slots=True)
class _Write:
    """A write that was begun: the digest of its request, and the answer once there is one."""

    digest: str
    answer: list[Message] = field(default_factory=list)
    done: bool = False

    @property
    def status(self) -> int:
        """The status of the answer, 0 if there is none."""
        return int(self.answer[0]["status"]) if self.answer else 0

    @property
    def may_be_done(self) -> bool:
        """Whether it may have had an effect, so that it must not be done again."""
        return self.status not in _REFUSED and not (self.status == _UNAVAILABLE and self._says_nothing_was_done())

    def _says_nothing_was_done(self) -> bool:
        text = b"".join(message.get("body", b"") for message in self.answer)
        try:
            error = json.loads(text)["error"]
            return error["code"] in _NOTHING_DONE and error.get("details", {}).get("outcome") != OUTCOME_UNKNOWN
        except (ValueError, KeyError, TypeError, AttributeError):  # another answer than ours
            return False

    @property
    def size(self) -> int:
        """How much memory it takes, about."""
        return _ENTRY_BYTES + sum(len(message.get("body", b"")) for message in self.answer)


class Writes:
    """Middleware that reads the body of a write, and answers a write that is repeated from memory.

    A key belongs to its caller and to a method and path. With another body it is refused, and while its request is
    under way too. A write whose outcome is unknown is not done again either, as one during which the store failed. One
    that was refused, or that did not reach its server, is done when it is repeated. Each process remembers the writes
    that it has done itself.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        """Bound the bodies of requests."""
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._running: dict[Place, _Write] = {}
        self._done: TTLCache[Place, _Write] = TTLCache(KEPT_BYTES, KEPT_S, getsizeof=lambda write: write.size)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["method"] not in _WRITES:
            await self._app(scope, receive, send)
            return
        body = await _read_body(receive, self._max_body_bytes)
        if body is None:
            error = InvalidValueError(
                f"the body is larger than {self._max_body_bytes} bytes",
                hint="send less, or raise TOOLSCOUT_MAX_BODY_BYTES",
            )
            await problem(error, status=_TOO_LARGE)(scope, receive, send)
            return
        key = _header(scope, b"idempotency-key")
        if key is None:
            await self._app(scope, _again(body, receive), send)
        elif not 0 < len(key) <= LONGEST_KEY:
            error = InvalidValueError("the Idempotency-Key cannot be used", hint=f"use 1 to {LONGEST_KEY} characters")
            await problem(error)(scope, receive, send)
        else:
            await self._once(_place(scope, key), _digest(scope, body), scope, _again(body, receive), send)

    async def _once(self, place: Place, digest: str, scope: Scope, receive: Receive, send: Send) -> None:
        known = self._running.get(place) or self._done.get(place)
        if known is None:
            await self._do(place, _Write(digest), scope, receive, send)
        elif known.digest != digest:
            error = ConflictError("this Idempotency-Key was sent with another request", hint="use a new key")
            await problem(error)(scope, receive, send)
        elif not known.answer:
            why = "its answer was not kept" if known.done else "it is still under way"
            error = ConflictError(f"this request was sent before, and {why}", hint="see whether it had an effect")
            await problem(error)(scope, receive, send)
        else:
            for message in known.answer:
                await send(message)

    async def _do(self, place: Place, write: _Write, scope: Scope, receive: Receive, send: Send) -> None:
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)
            await send(message)

        self._running[place] = write
        try:
            await self._app(scope, receive, keep)
        finally:
            del self._running[place]
            write.answer, write.done = messages, True
            if write.may_be_done:
                if write.size > KEPT_BYTES // 100:
                    write.answer = []
                self._done[place] = write


def _place(scope: Scope, key: str) -> Place:
    caller = verified_caller(scope.get("user")) or Caller()
    return (caller.tenant, caller.user, caller.key, scope.get(CONSOLE_OPERATOR), scope["method"], scope["path"], key)


def _digest(scope: Scope, body: bytes) -> str:
    return hashlib.sha256(bytes(scope.get("query_string", b"")) + b"\n" + body).hexdigest()


def _header(scope: Scope, name: bytes) -> str | None:
    return next((bytes(value).decode("latin-1") for key, value in scope.get("headers", ()) if key == name), None)


async def _read_body(receive: Receive, max_bytes: int) -> bytes | None:
    """Read a body. None if it is too large: the rest of it is not read."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > max_bytes:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a function that gives a body that was read."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
