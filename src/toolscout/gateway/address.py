"""The address of the HTTP server, and whether callers must authenticate there."""

from __future__ import annotations

from toolscout.errors import InvalidValueError, SettingError, UsageError
from toolscout.loopback import is_loopback


def parse_address(address: str, option: str = "--http") -> tuple[str, int]:
    """Parse the `[HOST:]PORT` of an option. The default host is loopback."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidValueError(f"{option} takes [HOST:]PORT, not {address!r}", hint=f"for example {option} 8080")
    return host, int(port)


def requires_authentication(host: str, *, auth: bool, issuer: str, insecure_no_auth: bool) -> bool:
    """Tell whether callers must authenticate. On loopback it is the operator's choice, elsewhere the default."""
    if insecure_no_auth and (auth or issuer):
        raise UsageError(
            "--insecure-no-auth contradicts --auth and TOOLSCOUT_AUTH_ISSUER",
            hint="remove --insecure-no-auth, or remove the other two",
        )
    return not insecure_no_auth and (auth or bool(issuer) or not is_loopback(host))


def no_credentials(host: str) -> SettingError:
    """Build the error for a server that requires authentication but has neither API keys nor an issuer."""
    return SettingError(
        f"serving on {host} requires authentication, but there is neither a usable API key nor an issuer",
        hint="create a key with `toolscout keys create`, or set TOOLSCOUT_AUTH_ISSUER. Use --insecure-no-auth only "
        "behind a proxy that authenticates",
    )
