"""The log of refused HTTP requests: the sender's address and the reason, never the credentials."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("toolscout")
_REASONS: ContextVar[list[str] | None] = ContextVar("toolscout_refusal", default=None)
_DEFAULT_REASONS = {401: "no valid key or token was sent", 403: "the key or token does not allow this"}
_WITH_REASON = frozenset({429, 503})
_WINDOW_S = 60.0
_MAX_LINES = 30


def note_reason(reason: str) -> None:
    """Note why the current request is refused, for the log. The reason must not contain a secret."""
    reasons = _REASONS.get()
    if reasons is not None:
        reasons.append(reason)


class DeniedLog:
    """Middleware that logs 401, 403 and 429, and 503 with a reason: 30 lines a minute, then only a count."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock
        self._since = clock()
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, and log it if it was refused."""
        reasons: list[str] = []
        _REASONS.set(reasons)

        async def send_logged(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                if status in _DEFAULT_REASONS or (status in _WITH_REASON and reasons):
                    self._log(scope, status, reasons)
            await send(message)

        await self._app(scope, receive, send_logged)

    def _log(self, scope: Scope, status: int, reasons: list[str]) -> None:
        if self._clock() - self._since >= _WINDOW_S:
            if self._count > _MAX_LINES:
                _log.warning("%d more requests were refused", self._count - _MAX_LINES)
            self._since, self._count = self._clock(), 0
        self._count += 1
        if self._count <= _MAX_LINES:
            peer = ascii(str((scope.get("client") or ("unknown",))[0])[:100]).strip("'")
            reason = reasons[-1] if reasons else _DEFAULT_REASONS[status]
            more = " (further refusals in this minute are only counted)" if self._count == _MAX_LINES else ""
            _log.warning("a request from %s was refused with %d: %s%s", peer, status, reason, more)
