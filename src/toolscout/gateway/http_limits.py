"""Limits of HTTP requests that are refused before MCP: status 429 with `Retry-After`, and a JSON-RPC error as body."""

from __future__ import annotations

import time
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscout.errors import LimitError
from toolscout.gateway.denied import note_reason
from toolscout.gateway.identity import verified_caller
from toolscout.gateway.middleware import to_protocol_error
from toolscout.models import Caller
from toolscout.policy.token_buckets import TokenBuckets
from toolscout.settings import Settings

REFUSALS_PER_MINUTE = 300
"""How many requests without a valid key or token one address (in IPv6, one /64) may send in a minute."""

_RETRY_SESSION_S = 60
_UNAUTHORIZED = 401


class SessionManager(StreamableHTTPSessionManager):
    """The SDK's sessions of older clients, with a limit for each caller, so that no key takes those of all others."""

    def __init__(self, app: Server[Any], settings: Settings) -> None:
        """Take the limits from the settings."""
        super().__init__(app=app, max_request_body_size=settings.max_body_bytes)
        self._max_caller_sessions = settings.max_caller_sessions

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        """Open a session, or raise LimitError. Without authentication there is only the SDK's limit for all."""
        if requestor is not None:
            count = sum(owner == requestor for owner in self._session_owners.values())
            if count >= self._max_caller_sessions:
                raise LimitError(
                    f"{count} sessions are open, which is the limit of a key or user; no other was opened",
                    hint="end sessions with DELETE, or use protocol 2026-07-28, which has no sessions",
                    details={"retry_after_s": _RETRY_SESSION_S},
                )
        return super()._admit_session(requestor)


class CallerLimit:
    """Middleware that counts the requests of each caller, and answers 429 to one over a limit."""

    def __init__(self, app: ASGIApp, count_request: Callable[[Caller], None]) -> None:
        """Take a function that counts a request of a caller and raises LimitError over the limit."""
        self._app = app
        self._count_request = count_request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, or answer 429."""
        try:
            self._count_request(verified_caller(scope.get("user")) or Caller())
            await self._app(scope, receive, send)
        except LimitError as error:
            await too_many_requests(error)(scope, receive, send)


class Refusals:
    """The requests without a valid key or token that each address has sent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = TokenBuckets(clock)

    def wait_s(self, scope: Scope) -> int:
        """Return after how many seconds the sender of a request may be refused again, 0 for now."""
        return self._buckets.get((_address(scope),), REFUSALS_PER_MINUTE).wait_s(REFUSALS_PER_MINUTE)

    def note(self, scope: Scope) -> None:
        """Count a refusal."""
        bucket = self._buckets.get((_address(scope),), REFUSALS_PER_MINUTE)
        bucket.tokens = max(bucket.tokens - 1, 0.0)


class RefusalLimit:
    """Middleware that answers 429 to an address that has sent many requests without a valid key or token.

    Valid ones of the same address are served, because it may be that of a proxy. Meanwhile no key is looked up in the
    store that has not been valid before.
    """

    def __init__(self, app: ASGIApp, asks_store: Callable[[str], bool], refusals: Refusals) -> None:
        """Take a function that tells whether a token cannot be verified without reading the store."""
        self._app = app
        self._asks_store = asks_store
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, and answer 429 where it would be 401 once too often."""
        wait_s = self._refusals.wait_s(scope)
        if wait_s and self._asks_store(_token(scope)):
            await _too_many_refusals(wait_s)(scope, receive, send)
            return
        refused = False

        async def send_limited(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start" and message["status"] == _UNAUTHORIZED:
                if wait_s:
                    refused = True
                    await _too_many_refusals(wait_s)(scope, receive, send)
                self._refusals.note(scope)
            if not refused:
                await send(message)

        await self._app(scope, receive, send_limited)


def too_many_requests(error: LimitError) -> JSONResponse:
    """Build the answer to a request over a limit. Clients of MCP show its JSON-RPC error."""
    note_reason(error.message)
    body = {"jsonrpc": "2.0", "id": None, "error": to_protocol_error(error).error.model_dump(exclude_none=True)}
    return JSONResponse(body, status_code=429, headers={"Retry-After": str(error.details["retry_after_s"])})


def _too_many_refusals(wait_s: int) -> JSONResponse:
    return too_many_requests(
        LimitError(
            "too many requests without a valid key or token came from this address",
            hint=f"try again in {wait_s} s, with a valid key or token",
            details={"retry_after_s": wait_s},
        )
    )


def _address(scope: Scope) -> str:
    """Return the address of the client. In IPv6 it is the network: whoever has one address has all of a /64."""
    try:
        address = ip_address((scope.get("client") or ("",))[0])
    except ValueError:
        return ""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Network((address, 64), strict=False))


def _token(scope: Scope) -> str:
    header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    return bytes(header).decode("latin-1").partition(" ")[2].strip()
