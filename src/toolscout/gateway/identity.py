"""Who asks, once they are verified: what the HTTP server left in the request, and what is theirs alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from toolscout.errors import AuthError
from toolscout.gateway.peers import Context
from toolscout.models import Caller

CALLER = "toolscout.caller"
"""Where an AccessToken of ours holds its Caller, among its claims."""

Owner = tuple[str, str | None, str | None]
"""Tenant, user and key: what one caller keeps here, no other can read."""


def caller_in(user: object) -> Caller | None:
    """Return who was verified, from what the SDK's middleware left in the request."""
    return _caller_of(user.access_token) if isinstance(user, AuthenticatedUser) else None


def owner_of(caller: Caller) -> Owner:
    """Return whose a parked call, a cut result or a link is."""
    return (caller.tenant, caller.user, caller.key)


class Identity:
    """Says who asks: the local user, or, where everyone must identify themselves, nobody but the one verified."""

    def __init__(self, local: Callable[[], Caller], *, authenticated: bool) -> None:
        """Take the local user, who changes with the config; `authenticated` lets nobody pass for them."""
        self._local = local
        self._authenticated = authenticated

    def of(self, context: Context) -> Caller:
        """Return who sent a request; raise AuthError where that is not known for certain."""
        if not self._authenticated:
            return self._local()
        request = context.request
        found = caller_in(request.scope.get("user")) if request is not None else None
        if found is None:
            raise AuthError("nobody has identified themselves", hint="send a key or a token")
        return self.reaching(found)

    def current(self) -> Caller | None:
        """Return who sent the request that runs now, for those who are not given it."""
        if not self._authenticated:
            return self._local()
        token = get_access_token()
        found = _caller_of(token) if token else None
        return self.reaching(found) if found else None

    def reaching(self, caller: Caller) -> Caller:
        """Return the caller as one who reaches the servers of the config, as they are now."""
        return replace(caller, servers=self._local().servers)


def _caller_of(token: AccessToken) -> Caller | None:
    found = (token.claims or {}).get(CALLER)
    return found if isinstance(found, Caller) else None
