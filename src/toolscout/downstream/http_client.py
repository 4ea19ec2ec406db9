"""Servers behind a URL: every connection checked, every body bounded, and one failing request costs one call."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from toolscout.config import ServerConfig
from toolscout.downstream.egress import checked_transport
from toolscout.downstream.oauth import GatewayTokenAuth
from toolscout.errors import ServerUnavailableError
from toolscout.settings import Settings

UNREACHABLE: Final = -32090
"""The code of the error that stands in for the answer to a request which failed on its way."""

_NOT_FOUND = 404
_ERROR = 400
_CONNECT_S = 10.0
_BRIEF_S = 3.0
_SESSION = "mcp-session-id"


class BodyError(httpx2.StreamError):
    """A body that passes its bound or breaks off; the SDK turns this, and only this, into an error of one call."""


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error where it passes its bound."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        try:
            async for part in self._inner:
                read += len(part)
                if read > self._most:
                    raise BodyError(f"the answer has more than {self._most} bytes, which are not read")
                yield part
        except httpx2.TransportError as error:
            raise BodyError(in_words(error)) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """The checked transport with bounded, unpacked bodies and a deadline on answers that never come."""

    def __init__(self, config: ServerConfig, settings: Settings, read_s: float) -> None:
        self._inner = checked_transport(private=config.private, connections=config.concurrency * 2 + 8)
        self._most = settings.max_line_bytes
        self._read_s = read_s

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "GET":
            # A call that was given up in the handshake era is left open by the SDK, and what is no call (a notice, an
            # answer, a goodbye) holds up all that follows: none of them may last.
            read_s = self._read_s if _is_call(request) else _BRIEF_S
            request.extensions["timeout"] = {**request.extensions.get("timeout", {}), "read": read_s}
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # A packed body can be a thousand times what it seems; we asked for none.
            await response.aclose()
            raise httpx2.RemoteProtocolError("the answer is packed, which was not asked for")
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - what an async transport returns
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            stream = _Bounded(stream, self._most)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


_ours: ContextVar[bool] = ContextVar("ours", default=False)


def _unlogged(_record: logging.LogRecord) -> bool:
    """Keep what httpx logs of our requests out of every log: it writes URLs whole, and a URL may hold a secret."""
    return not _ours.get()


logging.getLogger("httpx2").addFilter(_unlogged)


class DownstreamHttpClient(httpx2.AsyncClient):
    """An HTTP client whose failures become answers: in the SDK, one exception would end every call of the session."""

    def __init__(self, config: ServerConfig, settings: Settings, *, contained: bool = True) -> None:
        """Make a client for one server; the only credentials are those of its config."""
        super().__init__(
            transport=_BoundedTransport(config, settings, config.timeout_s + _CONNECT_S),
            headers={**config.headers, "Accept-Encoding": "identity"},
            auth=GatewayTokenAuth(config.title, config.url, config.oauth) if config.oauth else None,
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
            trust_env=False,  # a proxy from the environment would connect in our place, unchecked
        )
        self._contained = contained
        self.on_lost: Callable[[str], None] = lambda _: None
        self.refused = 0
        """The status of the last request that was refused without a JSON-RPC answer."""
        self.hint = ""
        """What to do about the last request that did not get through."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; where that fails, answer with an error that fails its call alone."""
        ours = _ours.set(True)
        try:
            return await self._send(request, **options)
        finally:
            _ours.reset(ours)

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
            reason = error.message if isinstance(error, ServerUnavailableError) else in_words(error)
            self.hint = error.hint if isinstance(error, ServerUnavailableError) else "check its url, and that it runs"
            if not self._contained:
                self.on_lost(reason)
            # Only what failed before a connection stood was certainly not sent.
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


def _is_call(request: httpx2.Request) -> bool:
    begin = request.content[:200] if request.method == "POST" else b""
    return b'"method"' in begin and b'"notifications/' not in begin


def _answer(request: httpx2.Request, status: int, reason: str, *, sent: bool = True) -> httpx2.Response:
    error = {"code": UNREACHABLE, "message": reason, "data": {"sent": sent}}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    content = json.dumps(body).encode()
    return httpx2.Response(status, headers={"content-type": "application/json"}, content=content, request=request)


def _is_rpc_error(body: bytes) -> bool:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("jsonrpc") == "2.0" and isinstance(value.get("error"), dict)


def in_words(error: Exception) -> str:
    """Say what happened without what httpx knows of the request: a URL may hold a secret."""
    if isinstance(error, httpx2.HTTPStatusError):
        return f"it answered {error.response.status_code}"
    kinds = (
        (httpx2.ConnectTimeout, "it cannot be connected to in time"),
        (httpx2.ConnectError, "it cannot be connected to"),
        (httpx2.TimeoutException, "it did not answer in time"),
        (BodyError, str(error)),
    )
    return next(
        (words for kind, words in kinds if isinstance(error, kind)), f"the connection broke ({type(error).__name__})"
    )


@asynccontextmanager
async def open_http(config: ServerConfig, settings: Settings, client: DownstreamHttpClient) -> AsyncIterator[Any]:
    """Give the two ends of a streamable HTTP connection."""
    async with (
        client,
        streamable_http_client(config.url, http_client=client, max_sse_event_size=settings.max_line_bytes) as streams,
    ):
        yield streams


@asynccontextmanager
async def open_sse(config: ServerConfig, client: DownstreamHttpClient) -> AsyncIterator[Any]:
    """Give the two ends of a connection of the first protocol: events down, posts up."""

    def own_client(
        headers: dict[str, str] | None = None,  # noqa: ARG001 - the interface's; ours has all it needs
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001 - the interface's
        auth: httpx2.Auth | None = None,  # noqa: ARG001 - the interface's
    ) -> httpx2.AsyncClient:
        return client

    async with sse_client(config.url, httpx_client_factory=own_client) as streams:
        yield streams
