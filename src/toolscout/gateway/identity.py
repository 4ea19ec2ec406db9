"""Who sent a request: the caller that the HTTP server has verified, or the local user."""

from __future__ import annotations

from collections.abc import Callable

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from toolscout.errors import AuthError
from toolscout.gateway.client import Context
from toolscout.models import Caller

CALLER = "toolscout.caller"
"""The claim of an AccessToken that holds its Caller."""

Owner = tuple[str, str | None, str | None]
"""Tenant, user and key: what is stored for one owner cannot be read by another."""


def verified_caller(user: object) -> Caller | None:
    """Return the verified caller from what the SDK's middleware left in the request."""
    return _caller_of(user.access_token) if isinstance(user, AuthenticatedUser) else None


def owner_of(caller: Caller) -> Owner:
    """Return the owner of a pending call, a stored result or a link."""
    return (caller.tenant, caller.user, caller.key)


class CallerResolver:
    """Finds the caller of a request; where authentication is required, only a verified one."""

    def __init__(self, narrow: Callable[[Caller], Caller], *, authenticated: bool) -> None:
        """Take what narrows a caller to the servers of their tenant; `authenticated` accepts only verified callers."""
        self._narrow = narrow
        self._authenticated = authenticated

    def of(self, context: Context) -> Caller:
        """Return the caller of a request; raise AuthError when none was verified."""
        if not self._authenticated:
            return self._narrow(Caller())
        request = context.request
        caller = verified_caller(request.scope.get("user")) if request is not None else None
        if caller is None:
            raise AuthError("no caller has been verified", hint="send a key or a token")
        return self.with_servers(caller)

    def current(self) -> Caller | None:
        """Return the caller of the request that runs now, for code that is not given the request."""
        if not self._authenticated:
            return self._narrow(Caller())
        token = get_access_token()
        caller = _caller_of(token) if token else None
        return self.with_servers(caller) if caller else None

    def with_servers(self, caller: Caller) -> Caller:
        """Return the caller with the servers that their tenant reaches now."""
        return self._narrow(caller)


def _caller_of(token: AccessToken) -> Caller | None:
    caller = (token.claims or {}).get(CALLER)
    return caller if isinstance(caller, Caller) else None
