"""Protection against SSRF: every connection is resolved, checked and made to the address that was checked.

The check sits below HTTP, at the moment of connecting, so that a redirect, a second resolution and an odd spelling of
an address (decimal, octal, mapped into IPv6) all pass through it. It uses the public network backend of httpcore2. The
transport of httpx2 takes no backend, so `CheckedTransport` builds its own connection pool.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import httpcore2
import httpx2

from toolscout.errors import ServerUnavailableError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_IDLE_S = 4.0  # common servers close idle connections after 5 s, and no call should meet a closing one
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_TRANSLATED_HERE = ipaddress.IPv6Network("64:ff9b:1::/48")
_STATELESS = ipaddress.IPv6Network("::ffff:0:0:0/96")
_METADATA = frozenset(
    map(ipaddress.ip_address, ("168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"))
)
"""Addresses at which clouds give credentials to whoever asks from inside. Link-local ones are refused anyway."""

Origin = tuple[str, int]
_ERRORS: Mapping[type[Exception], type[httpx2.TransportError]] = {
    httpcore2.ConnectError: httpx2.ConnectError,
    httpcore2.ConnectTimeout: httpx2.ConnectTimeout,
    httpcore2.LocalProtocolError: httpx2.LocalProtocolError,
    httpcore2.NetworkError: httpx2.NetworkError,
    httpcore2.PoolTimeout: httpx2.PoolTimeout,
    httpcore2.ProtocolError: httpx2.ProtocolError,
    httpcore2.ProxyError: httpx2.ProxyError,
    httpcore2.ReadError: httpx2.ReadError,
    httpcore2.ReadTimeout: httpx2.ReadTimeout,
    httpcore2.RemoteProtocolError: httpx2.RemoteProtocolError,
    httpcore2.TimeoutException: httpx2.TimeoutException,
    httpcore2.UnsupportedProtocol: httpx2.UnsupportedProtocol,
    httpcore2.WriteError: httpx2.WriteError,
    httpcore2.WriteTimeout: httpx2.WriteTimeout,
}


def check_address(address: str, *, private: bool) -> bool:
    """Return whether we may connect to an address: always to public ones, to private ones if the config allows it."""
    target = _unwrap_ipv4(ipaddress.ip_address(address.split("%")[0]))
    if target in _METADATA or target.is_unspecified or target.is_multicast or target.is_link_local:
        return False
    if (
        isinstance(target, ipaddress.IPv6Address)
        and (target.is_site_local or target in _COMPATIBLE or target in _TRANSLATED_HERE)
        and not target.is_loopback
    ):
        return False
    return private or (target.is_global and not target.is_reserved)


def _unwrap_ipv4(address: _Address) -> _Address:
    """Return the IPv4 address inside an IPv6 one: mapped, translated, 6to4 or Teredo."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if address in _TRANSLATED or address in _STATELESS:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour:
        return address.sixtofour
    if address.teredo:
        return address.teredo[1]
    return address


def origin_of(url: str) -> Origin:
    """Return the host and port that a URL leads to, as the HTTP client writes them."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        return "", 0  # the request will fail with the same error
    port = parsed.port or {"https": 443}.get(parsed.scheme, 80)
    return parsed.raw_host.decode("ascii").lower(), port


async def lookup(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    """Resolve a host with the system's resolver."""
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def resolve(host: str, port: int, *, private: bool) -> list[str]:
    """Return the addresses of a host. Refuse the host when we may not connect to one of them."""
    try:
        rows = await lookup(host, port)
    except (OSError, UnicodeError) as error:
        raise ServerUnavailableError(f"{host} has no address", hint="check the server's url") from error
    addresses = list(dict.fromkeys(str(item[4][0]) for item in rows))
    if not addresses or not all(check_address(address, private=private) for address in addresses):
        raise ServerUnavailableError(
            f"{host} has an address that toolscout may not connect to",
            hint='if it is a private address on purpose, set "private": true in the server\'s "toolscout" object',
        )
    return addresses


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """A network backend that connects to checked addresses only.

    With `origins`, `private` holds for these hosts and ports alone: those of the config, not those that a server names.
    """

    def __init__(self, *, private: bool, origins: Collection[Origin] | None = None) -> None:
        self._private = private
        self._origins = origins
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - required by httpcore2
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve a host, check all its addresses and connect to the first that answers."""
        try:
            async with asyncio.timeout(timeout):
                private = self._private and (self._origins is None or (host.lower(), port) in self._origins)
                addresses = await resolve(host, port, private=private)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("no address in time") from error
        failure = httpcore2.ConnectError("no address")
        for address in addresses:
            try:
                # We connect to the address that was checked: a different answer of the resolver has no effect.
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore2.ConnectError as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002 - required by httpcore2
        timeout: float | None = None,  # noqa: ARG002, ASYNC109 - required by httpcore2
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - required by httpcore2
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: no server is reached through a socket of this machine."""
        raise httpcore2.ConnectError("unix sockets are not allowed")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._inner.sleep(seconds)


@cache
def tls_context() -> ssl.SSLContext:
    """Read the certificates of the issuers once. For each server, that would take most of the time of a start."""
    return httpx2.create_ssl_context(trust_env=False)


class CheckedTransport(httpx2.AsyncBaseTransport):
    """An HTTP transport whose every connection, redirects included, goes through the check."""

    def __init__(self, *, private: bool, origins: Collection[Origin] | None = None, connections: int = 24) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls_context(),
            network_backend=CheckedBackend(private=private, origins=origins),
            max_connections=connections,
            keepalive_expiry=_IDLE_S,
            http1=True,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request over the pool."""
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        with _translated_errors():
            response = await self._pool.handle_async_request(
                httpcore2.Request(
                    method=request.method,
                    url=url,
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_ResponseBody(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _ResponseBody(httpx2.AsyncByteStream):
    """The body of a response, with errors as httpx2 raises them."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated_errors():
            async for part in cast("AsyncIterable[bytes]", self._response.stream):
                yield part

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise errors of httpcore2 as those of httpx2."""
    try:
        yield
    except tuple(_ERRORS) as error:
        raise _ERRORS.get(type(error), httpx2.TransportError)(str(error)) from error
