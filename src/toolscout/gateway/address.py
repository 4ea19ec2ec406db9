"""Where the HTTP server listens: loopback, unless the operator insists."""

from __future__ import annotations

import ipaddress

from toolscout.errors import InvalidValueError, SettingError


def parse_address(address: str, option: str = "--http") -> tuple[str, int]:
    """Read the `[HOST:]PORT` of an option; without a host, loopback."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidValueError(f"{option} takes [HOST:]PORT, not {address!r}", hint=f"for example {option} 8080")
    return host, int(port)


def check_address(host: str, *, insecure_no_auth: bool) -> None:
    """Refuse to serve beyond this machine while nothing asks who is calling."""
    if _is_loopback(host) or insecure_no_auth:
        return
    raise SettingError(
        f"serving on {host} would let anyone who reaches it call every tool: there is no authentication yet",
        hint="serve on 127.0.0.1, or put a proxy that authenticates in front and say --insecure-no-auth",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
