"""The caller of a request: the one that the HTTP server has verified, or the local user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import HTTPConnection

from toolscout.errors import AuthError
from toolscout.gateway.client import Context
from toolscout.models import Caller

CALLER = "toolscout.caller"
"""The claim of an AccessToken that holds its Caller."""

Owner = tuple[str, str | None, str | None]
"""Tenant, user and key. Only the same three can read what is stored for an owner."""


def verified_caller(user: object) -> Caller | None:
    """Return the verified caller from the `user` that the SDK's middleware sets in the request."""
    return _caller_of(user.access_token) if isinstance(user, AuthenticatedUser) else None


def owner_of(caller: Caller) -> Owner:
    """Return the owner of a pending call, a stored result or a link."""
    return (caller.tenant, caller.user, caller.key)


class CallerResolver:
    """Finds the caller of a request. Where authentication is required, only a verified caller counts."""

    def __init__(self, narrow: Callable[[Caller], Caller], *, authenticated: bool) -> None:
        """Take a function that narrows a caller to their tenant's servers, and whether callers must be verified."""
        self._narrow = narrow
        self._authenticated = authenticated

    def of(self, context: Context) -> Caller:
        """Return the caller of an MCP request."""
        return self.of_request(context.request)

    def of_request(self, request: HTTPConnection | None) -> Caller:
        """Return the caller that the SDK's middleware verified in an HTTP request.

        Raise AuthError if authentication is required and none was verified.
        """
        if not self._authenticated:
            return self._narrow(Caller())
        caller = _caller_with_token(request) if request is not None else None
        if caller is None:
            raise AuthError("the request is not authenticated", hint="send an API key or an access token")
        return self.with_servers(caller)

    def current(self) -> Caller | None:
        """Return the caller of the current request, for code that does not get the request."""
        if not self._authenticated:
            return self._narrow(Caller())
        token = get_access_token()
        caller = _caller_of(token) if token else None
        return self.with_servers(caller) if caller else None

    def with_servers(self, caller: Caller) -> Caller:
        """Return the caller with the servers that their tenant can reach now."""
        return self._narrow(caller)


def _caller_of(token: AccessToken) -> Caller | None:
    caller = (token.claims or {}).get(CALLER)
    return caller if isinstance(caller, Caller) else None


def _caller_with_token(request: HTTPConnection) -> Caller | None:
    """Return the verified caller with the access token that the request came with. An API key stays out."""
    caller = verified_caller(request.scope.get("user"))
    if caller is None or caller.key is not None:
        return caller
    _, _, token = request.headers.get("authorization", "").partition(" ")
    return replace(caller, token=token.strip() or None)
