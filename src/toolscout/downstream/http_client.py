"""The HTTP client for servers behind a URL: connections are checked, bodies are bounded, failures fail one call."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Final

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.inbound import MCP_METHOD_HEADER

from toolscout.config import ServerConfig
from toolscout.downstream.egress import CheckedTransport, Origin, origin_of
from toolscout.downstream.http_body import BoundedBody, EventBody, describe
from toolscout.downstream.in_flight import CURRENT_REQUEST, Attempt, call_timeout_s
from toolscout.downstream.pace import CONNECT_S, Pace
from toolscout.errors import ServerUnavailableError, SignInRequiredError
from toolscout.settings import Settings

UNREACHABLE: Final = -32090
"""The code of the error that replaces the answer to a request that failed on its way."""

NEEDS_LOGIN: Final = -32091
"""The code of that error when somebody has to sign in first."""

NO_TOKEN: Final = -32092
"""The code of that error when the token of an account cannot be had now. The server may be well."""

_REDIRECT = 300
_NOT_FOUND = 404
_ERROR = 400
_CONNECT_S = 10.0
_NOTIFICATION_S = 3.0
_MAX_SHARING = 64
_ISSUER_BYTES = 1_048_576
_SESSION = "mcp-session-id"
_STREAMED = "toolscout.streamed"


class NoTokenError(ServerUnavailableError):
    """The token of an account cannot be had now, because of its issuer or the store. Nothing was sent."""


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """A transport that bounds the size of bodies and the time that a server may be silent, and refuses compression."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        max_bytes: int,
        silence_s: float,
        notification_s: float = _NOTIFICATION_S,
        pace: Pace | None = None,
    ) -> None:
        self._inner = inner
        self._pace = pace or Pace()
        self._max_bytes = max_bytes
        self._silence_s = silence_s
        self._notification_s = notification_s

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "GET":
            # In the handshake era the SDK leaves a cancelled request open. A notification, an answer or a DELETE blocks
            # all requests behind it. So each of them needs a time limit.
            silence_s = self._silence_s if _expects_answer(request) else self._notification_s
            request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": silence_s}
        elif pause_s := self._pace.spend(CONNECT_S):
            # A server that ends its stream of announcements again and again is asked for it again and again.
            await asyncio.sleep(pause_s)
        call = _attempt_of(request)
        attempt = call or Attempt()
        try:
            async with attempt.reading():
                response = await self._inner.handle_async_request(request)
        except TimeoutError:
            raise httpx2.ReadTimeout("nobody waits for the answer any more") from None
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # A compressed body can unpack to a thousand times its size, and we did not ask for one.
            await response.aclose()
            raise httpx2.RemoteProtocolError("the answer is compressed, which the request does not allow")
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - what an async transport returns
        if _is_event_stream(request, response):
            # The SDK reads event after event and bounds each. The answer of a call ends with the call, which may take
            # long if the server asks questions. A stream that announces changes has no end.
            bounded = call is None and _expects_answer(request) and not _listens(request)
            stream = EventBody(stream, attempt, self._pace, most_s=self._silence_s if bounded else math.inf)
        else:
            stream = BoundedBody(stream, attempt, self._pace, max_bytes=self._max_bytes, most_s=self._silence_s)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


def named_origins(config: ServerConfig) -> set[Origin]:
    """Return the hosts and ports that the config itself names for a server."""
    oauth = config.oauth
    urls = (config.url, oauth.token_url, oauth.issuer) if oauth else (config.url,)
    return {origin_of(url) for url in urls if url}


def private_origins(config: ServerConfig, settings: Settings) -> set[Origin]:
    """Return the hosts and ports that may have private addresses when a token is asked for.

    The issuer of the callers' tokens is among them where these are exchanged: the operator names it in the settings.
    """
    origins = named_origins(config) if config.private else set()
    if config.exchanges_tokens and settings.auth_issuer:
        origins.add(origin_of(settings.auth_issuer))
    return origins


def issuer_transport(config: ServerConfig, settings: Settings) -> httpx2.AsyncBaseTransport:
    """Return the transport for requests to the issuer of a server: connections are checked, bodies are bounded."""
    inner = CheckedTransport(private=True, origins=private_origins(config, settings), connections=4)
    return _BoundedTransport(inner, _ISSUER_BYTES, settings.connect_timeout_s, settings.connect_timeout_s)


_sending: ContextVar[bool] = ContextVar("sending", default=False)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep the HTTP library from logging requests that are sent in this block."""
    token = _sending.set(True)
    try:
        yield
    finally:
        _sending.reset(token)


def _keep_log_line(_record: logging.LogRecord) -> bool:
    """Drop log lines about our own requests: httpx writes whole URLs, and a URL may hold a secret."""
    return not _sending.get()


logging.getLogger("httpx2").addFilter(_keep_log_line)


class DownstreamHttpClient(httpx2.AsyncClient):
    """An HTTP client that turns failures into answers: in the SDK, one exception would end every call of a session."""

    def __init__(
        self,
        config: ServerConfig,
        settings: Settings,
        *,
        auth: httpx2.Auth | None = None,
        contained: bool = True,
        transport: httpx2.AsyncBaseTransport | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Make a client that sends the credentials of the config, or else those of `auth`, and no others.

        With `contained`, a failed request fails one call. Otherwise it ends the session. `transport` replaces the
        network in tests. `pace` is that of all connections to the server.
        """
        origins = named_origins(config)
        # A connection may outlive its call for a while. Each tenant that shares the session has slots of its own.
        slots = config.concurrency * (_MAX_SHARING if config.shared else 1)
        inner = transport or CheckedTransport(private=config.private, origins=origins, connections=slots * 2 + 8)
        # A call ends at its own deadline. This limit, a little later, frees the connection.
        silence_s = call_timeout_s(config, settings) + _CONNECT_S
        super().__init__(
            transport=_BoundedTransport(inner, settings.max_line_bytes, silence_s, pace=pace),
            headers={**config.headers, "Accept-Encoding": "identity"},
            auth=auth,
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
            trust_env=False,  # a proxy from the environment would connect in our place, unchecked
        )
        self._contained = contained
        self.on_lost: Callable[[str], None] = lambda _: None
        self.refused = 0
        """The status of the last request that was refused without a JSON-RPC answer."""
        self.hint = ""
        """What to do about the last request that failed."""
        self.sign_in: SignInRequiredError | None = None
        """Set when the server wanted somebody to sign in."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request. If that fails, return an error response, which fails this call alone."""
        if options.get("stream"):
            # Requests of the authorization flow, which share this client, do not have it: their bodies are read whole.
            request.extensions[_STREAMED] = True
        with unlogged():
            return await self._send(request, **options)

    async def _send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
            if response.status_code < _ERROR:
                return response
            body = await response.aread()
            await response.aclose()
        except ServerUnavailableError as error:
            # It comes before the request is sent, or after the server has refused it.
            code = NO_TOKEN if isinstance(error, NoTokenError) else UNREACHABLE
            if isinstance(error, SignInRequiredError):
                self.sign_in, code = error, NEEDS_LOGIN
            return self._failed(request, error.message, error.hint, sent=False, code=code)
        except (httpx2.TransportError, httpx2.StreamError) as error:
            # Only a request that failed before the connection was made was certainly not sent.
            sent = not isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout))
            return self._failed(request, describe(error), "check its url, and whether it is running", sent=sent)
        return self._refusal(request, response, body)

    def _failed(
        self, request: httpx2.Request, reason: str, hint: str, *, sent: bool, code: int = UNREACHABLE
    ) -> httpx2.Response:
        self.hint = hint
        if not self._contained:
            self.on_lost(reason)
        return _answer(request, 502, reason, sent=sent, code=code)

    def _refusal(self, request: httpx2.Request, response: httpx2.Response, body: bytes) -> httpx2.Response:
        if response.status_code == _NOT_FOUND and _SESSION in request.headers:
            self.on_lost("the server has forgotten the session")
            return _answer(request, _NOT_FOUND, "the server has forgotten the session; a new one is opened")
        if _is_rpc_error(body):
            return httpx2.Response(
                response.status_code, headers={"content-type": "application/json"}, content=body, request=request
            )
        self.refused = response.status_code
        if not self._contained:
            self.on_lost(f"it answered {response.status_code}")
        return _answer(request, response.status_code, f"it answered {response.status_code}")


def _is_event_stream(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Return whether the SDK reads a body as events. Every other body is read whole, whatever its type is called."""
    return (
        response.status_code < _REDIRECT
        and response.headers.get("content-type", "").startswith("text/event-stream")
        and _STREAMED in request.extensions
    )


def _attempt_of(request: httpx2.Request) -> Attempt | None:
    """Return the attempt of the call that an answer is for. What the authorization flow sends has none."""
    current = CURRENT_REQUEST.get()
    belongs = _STREAMED in request.extensions and (request.method == "GET" or _expects_answer(request))
    return current.attempt if current is not None and belongs else None


def _expects_answer(request: httpx2.Request) -> bool:
    start = request.content[:200] if request.method == "POST" else b""
    return b'"method"' in start and b'"notifications/' not in start


def _listens(request: httpx2.Request) -> bool:
    """Return whether the answer to a request is a stream of announcements."""
    return request.headers.get(MCP_METHOD_HEADER) == "subscriptions/listen"


def _answer(
    request: httpx2.Request, status: int, reason: str, *, sent: bool = True, code: int = UNREACHABLE
) -> httpx2.Response:
    error = {"code": code, "message": reason, "data": {"sent": sent}}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    content = json.dumps(body).encode()
    return httpx2.Response(status, headers={"content-type": "application/json"}, content=content, request=request)


def _is_rpc_error(body: bytes) -> bool:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("jsonrpc") == "2.0" and isinstance(value.get("error"), dict)


@asynccontextmanager
async def open_http(config: ServerConfig, settings: Settings, client: DownstreamHttpClient) -> AsyncIterator[Any]:
    """Yield the two streams of a streamable HTTP connection."""
    async with (
        client,
        streamable_http_client(config.url, http_client=client, max_sse_event_size=settings.max_line_bytes) as streams,
    ):
        yield streams


@asynccontextmanager
async def open_sse(config: ServerConfig, client: DownstreamHttpClient) -> AsyncIterator[Any]:
    """Yield the two streams of the older HTTP+SSE transport: events from the server, POST requests to it."""

    def client_factory(
        headers: dict[str, str] | None = None,  # noqa: ARG001 - required by the SDK
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001 - required by the SDK
        auth: httpx2.Auth | None = None,  # noqa: ARG001 - required by the SDK
    ) -> httpx2.AsyncClient:
        return client

    async with sse_client(config.url, httpx_client_factory=client_factory) as streams:
        yield streams
