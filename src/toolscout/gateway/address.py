"""Where the HTTP server listens, and whether callers must identify themselves there."""

from __future__ import annotations

import ipaddress

from toolscout.errors import InvalidValueError, SettingError, UsageError


def parse_address(address: str, option: str = "--http") -> tuple[str, int]:
    """Read the `[HOST:]PORT` of an option; without a host, loopback."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidValueError(f"{option} takes [HOST:]PORT, not {address!r}", hint=f"for example {option} 8080")
    return host, int(port)


def requires_authentication(host: str, *, auth: bool, issuer: str, insecure_no_auth: bool) -> bool:
    """Tell whether callers must identify themselves: always beyond this machine, and here when it is asked for."""
    if insecure_no_auth and (auth or issuer):
        raise UsageError(
            "--insecure-no-auth and an authentication that is asked for contradict each other",
            hint="leave it out, or leave out --auth and TOOLSCOUT_AUTH_ISSUER",
        )
    return not insecure_no_auth and (auth or bool(issuer) or not _is_loopback(host))


def no_credentials(host: str) -> SettingError:
    """Say that a start makes no sense: callers must identify themselves, and nobody can."""
    return SettingError(
        f"serving on {host} takes authentication, and there is neither a usable API key nor an issuer",
        hint="`toolscout keys create` makes a key, TOOLSCOUT_AUTH_ISSUER takes tokens; or put a proxy that "
        "authenticates in front and say --insecure-no-auth",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
