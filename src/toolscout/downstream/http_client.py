"""The HTTP client for servers behind a URL: connections are checked, bodies are bounded, failures fail one call."""

from __future__ import annotations

import json
import logging
import math
import time
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
from toolscout.downstream.in_flight import MAX_PAUSE_S, call_timeout_s
from toolscout.errors import ServerUnavailableError, SignInRequiredError
from toolscout.jsonrpc_lines import MAX_VALUES, ValueCounter
from toolscout.settings import Settings

UNREACHABLE: Final = -32090
"""The code of the error that replaces the answer to a request that failed on its way."""

NEEDS_LOGIN: Final = -32091
"""The code of that error when somebody has to sign in first."""

_REDIRECT = 300
_NOT_FOUND = 404
_ERROR = 400
_CONNECT_S = 10.0
_NOTIFICATION_S = 3.0
_MAX_SHARING = 64
_ISSUER_BYTES = 1_048_576
_SESSION = "mcp-session-id"
_STREAMED = "toolscout.streamed"


class BodyError(httpx2.StreamError):
    """A body that is too long or breaks off. The SDK turns only this error into an error of one call."""


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that raises an error when it is longer, takes longer or has more values than allowed.

    `inf` is no limit. Each event of a stream may have as many values as a whole body.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, *, max_bytes: float, most_s: float) -> None:
        self._inner = inner
        self._max_bytes = max_bytes
        self._until = time.monotonic() + most_s
        self._values = ValueCounter()

    def _count(self, part: bytes) -> None:
        if self._values.feed(part) > MAX_VALUES + len(part):
            raise BodyError(f"the answer has more than {MAX_VALUES} values, which are not read")
        if self._max_bytes == math.inf and (b"\n\n" in part or b"\r\n\r\n" in part):
            self._values = ValueCounter()
            self._values.feed(part.replace(b"\r", b"").rpartition(b"\n\n")[2])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for part in self._inner:
                size += len(part)
                if size > self._max_bytes:
                    raise BodyError(f"the answer has more than {self._max_bytes} bytes, which are not read")
                if time.monotonic() > self._until:
                    raise BodyError("the answer does not end, and nobody waits for it any more")
                self._count(part)
                yield part
        except httpx2.TransportError as error:
            raise BodyError(describe(error)) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """A transport that bounds the size of bodies and the time that a server may be silent, and refuses compression."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        max_bytes: int,
        silence_s: float,
        notification_s: float = _NOTIFICATION_S,
    ) -> None:
        self._inner = inner
        self._max_bytes = max_bytes
        self._silence_s = silence_s
        self._notification_s = notification_s

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "GET":
            # In the handshake era the SDK leaves a cancelled request open. A notification, an answer or a DELETE blocks
            # all requests behind it. So each of them needs a time limit.
            silence_s = self._silence_s if _expects_answer(request) else self._notification_s
            request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": silence_s}
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # A compressed body can unpack to a thousand times its size, and we did not ask for one.
            await response.aclose()
            raise httpx2.RemoteProtocolError("the answer is compressed, which the request does not allow")
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - what an async transport returns
        if _is_event_stream(request, response):
            # The SDK reads event after event and bounds each. A stream that announces changes has no end.
            most_s = self._silence_s + MAX_PAUSE_S if _expects_answer(request) and not _listens(request) else math.inf
            stream = _BoundedBody(stream, max_bytes=math.inf, most_s=most_s)
        else:
            stream = _BoundedBody(stream, max_bytes=self._max_bytes, most_s=self._silence_s)
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


def issuer_transport(config: ServerConfig, settings: Settings) -> httpx2.AsyncBaseTransport:
    """Return the transport for requests to the issuer of a server: connections are checked, bodies are bounded."""
    inner = CheckedTransport(private=config.private, origins=named_origins(config), connections=4)
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
    ) -> None:
        """Make a client that sends the credentials of the config, or else those of `auth`, and no others.

        With `contained`, a failed request fails one call. Otherwise it ends the session. `transport` replaces the
        network in tests.
        """
        origins = named_origins(config)
        # A connection may outlive its call for a while. Each tenant that shares the session has slots of its own.
        slots = config.concurrency * (_MAX_SHARING if config.shared else 1)
        inner = transport or CheckedTransport(private=config.private, origins=origins, connections=slots * 2 + 8)
        # A call ends at its own deadline. This limit, a little later, frees the connection.
        silence_s = call_timeout_s(config, settings) + _CONNECT_S
        super().__init__(
            transport=_BoundedTransport(inner, settings.max_line_bytes, silence_s),
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
        except (httpx2.TransportError, httpx2.StreamError, ServerUnavailableError) as error:
            reason = error.message if isinstance(error, ServerUnavailableError) else describe(error)
            self.hint = (
                error.hint if isinstance(error, ServerUnavailableError) else "check its url, and whether it is running"
            )
            if not self._contained:
                self.on_lost(reason)
            if isinstance(error, SignInRequiredError):
                self.sign_in = error
                return _answer(request, 502, reason, sent=False, code=NEEDS_LOGIN)
            # Only a request that failed before the connection was made was certainly not sent.
            unsent = isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, ServerUnavailableError))
            return _answer(request, 502, reason, sent=not unsent)
        return self._refusal(request, response, body)

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
