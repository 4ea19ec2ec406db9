"""Whoever is turned away at the door leaves a line in the log: from where and why, and never what was shown."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("toolscout")
_REASONS: ContextVar[list[str] | None] = ContextVar("toolscout_refusal", default=None)
_FALLBACK = {401: "it showed no key or token that counts", 403: "its key or token is not good for this"}
_NOT_NOW = 503
_WINDOW_S = 60.0
_MOST = 30


def note_reason(reason: str) -> None:
    """Remember why the request at hand is about to be refused; for the log alone, so it holds no secret."""
    reasons = _REASONS.get()
    if reasons is not None:
        reasons.append(reason)


class DeniedLog:
    """Logs every answer of 401 and 403, and of 503 with a reason; past a number in a minute they are only counted."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        """Stand before all that refuses."""
        self._app = app
        self._clock = clock
        self._since = clock()
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and look at the status of its answer."""
        reasons: list[str] = []
        _REASONS.set(reasons)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                if status in _FALLBACK or (status == _NOT_NOW and reasons):
                    self._note(scope, status, reasons)
            await send(message)

        await self._app(scope, receive, watched)

    def _note(self, scope: Scope, status: int, reasons: list[str]) -> None:
        if self._clock() - self._since >= _WINDOW_S:
            if self._count > _MOST:
                _log.warning("%d more requests were turned away", self._count - _MOST)
            self._since, self._count = self._clock(), 0
        self._count += 1
        if self._count <= _MOST:
            peer = ascii(str((scope.get("client") or ("unknown",))[0])[:100]).strip("'")
            reason = reasons[-1] if reasons else _FALLBACK[status]
            more = "; more of them in this minute are only counted" if self._count == _MOST else ""
            _log.warning("a request from %s was turned away with %d: %s%s", peer, status, reason, more)
