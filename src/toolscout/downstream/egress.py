"""Where a server's URL may lead: every connection is resolved, checked and made to the checked address.

The check sits below HTTP, at the moment of connecting, so that a redirect, a second resolution and an odd spelling of
an address (decimal, octal, mapped into IPv6) all pass through it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore2
import httpx2

from toolscout.errors import ServerUnavailableError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_IDLE_S = 4.0  # shorter than the 5 s after which common servers close, so that no call meets a closing connection
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def check_address(address: str, *, private: bool) -> bool:
    """Tell whether an address may be dialled: public ones always, private ones where the config says so."""
    found = _unwrapped(ipaddress.ip_address(address.split("%")[0]))
    if found.is_unspecified or found.is_multicast or found.is_link_local:
        return False
    if (
        isinstance(found, ipaddress.IPv6Address)
        and (found.is_site_local or found in _COMPATIBLE)
        and not found.is_loopback
    ):
        return False
    return private or (found.is_global and not found.is_reserved)


def _unwrapped(address: _Address) -> _Address:
    """Return the IPv4 address that an IPv6 one stands for: mapped, translated, 6to4 or Teredo."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if address in _TRANSLATED:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour:
        return address.sixtofour
    if address.teredo:
        return address.teredo[1]
    return address


async def lookup(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    """Ask the system's resolver."""
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def resolve(host: str, port: int, *, private: bool) -> list[str]:
    """Return the addresses of a host that may be dialled; refuse the host when any of its addresses may not."""
    try:
        found = await lookup(host, port)
    except (OSError, UnicodeError) as error:
        raise ServerUnavailableError(f"{host} has no address", hint="check the server's url") from error
    addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
    if not addresses or not all(check_address(address, private=private) for address in addresses):
        raise ServerUnavailableError(
            f"{host} leads to an address that may not be dialled",
            hint='set "private": true in the server\'s "toolscout" object if that is meant',
        )
    return addresses


class _CheckedBackend(httpcore2.AsyncNetworkBackend):
    """A network that connects to checked addresses alone."""

    def __init__(self, *, private: bool) -> None:
        self._private = private
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the name is the interface's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                addresses = await resolve(host, port, private=self._private)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("no address in time") from error
        failure = httpcore2.ConnectError("no address")
        for address in addresses:
            try:
                # What was checked is what is dialled: another answer of the resolver changes nothing any more.
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore2.ConnectError as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002 - the interface's
        timeout: float | None = None,  # noqa: ARG002, ASYNC109 - the interface's
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the interface's
    ) -> httpcore2.AsyncNetworkStream:
        raise httpcore2.ConnectError("sockets of this machine are not dialled")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


def checked_transport(*, private: bool, connections: int = 24) -> httpx2.AsyncHTTPTransport:
    """Return an HTTP transport whose every connection, redirects included, goes through the check."""
    transport = httpx2.AsyncHTTPTransport(trust_env=False)
    transport._pool = httpcore2.AsyncConnectionPool(  # noqa: SLF001 - the only place where a network backend fits
        ssl_context=httpx2.create_ssl_context(trust_env=False),
        network_backend=_CheckedBackend(private=private),
        max_connections=connections,
        keepalive_expiry=_IDLE_S,
        http1=True,
    )
    return transport
