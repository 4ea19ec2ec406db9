"""Who makes a REST request, and whether they operate this gateway.

A caller operates it if their key or token has the operator scope. Where callers need not authenticate, on loopback,
the local user operates it from the console alone, whose session shows that they could read the gateway's output.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from toolscout.errors import ForbiddenError, StoreError
from toolscout.gateway.identity import CallerResolver, verified_caller
from toolscout.models import Caller, ServerStatus
from toolscout.scout import Scout
from toolscout.telemetry import acting_as
from toolscout.tool_keys import split_key

CONSOLE_OPERATOR = "toolscout.operator"
"""The entry of an ASGI scope that a session of the console sets where callers need not authenticate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The caller of a request, with the catalogue that they ask."""

    scout: Scout
    caller: Caller
    operator: bool

    async def visible_servers(self) -> list[ServerStatus]:
        """Return the servers that the caller reaches. Operators see all of them, with every detail."""
        statuses = self.scout.servers.statuses()
        return statuses if self.operator else await self.scout.access.visible_servers(self.caller, statuses)

    async def changes_waiting(self) -> Counter[str] | None:
        """Count the definitions of each server that wait for a decision.

        None for those who may not know, and while the catalogue cannot be read: the servers are known without it.
        """
        if not self.operator:
            return None
        try:
            changes = await self.scout.decisions.inventory.changes()
        except StoreError:
            return None
        return Counter(split_key(change.key)[0] for change in changes if change.waits)

    def in_place_of(self, user: str | None, tenant: str | None, groups: list[str] | None = None) -> Caller:
        """Return the caller that an operator asks about. Without a name it is the caller themselves."""
        if user is None and tenant is None and not groups:
            return self.caller
        if not self.operator:
            raise ForbiddenError("only operators may ask for another user", hint="omit user, tenant and groups")
        named = Caller(tenant=tenant or self.caller.tenant, user=user, groups=frozenset(groups or ()))
        return self.scout.narrow(named)


class RequesterResolver:
    """Finds the caller of a request, as the MCP endpoint does."""

    def __init__(self, scout: Scout, *, authenticated: bool, operator_scope: str) -> None:
        """Take the scope of operators, and whether callers must be verified."""
        self._scout = scout
        self._callers = CallerResolver(scout.narrow, authenticated=authenticated)
        self._authenticated = authenticated
        self._operator_scope = operator_scope

    def of(self, request: Request) -> Requester:
        """Return the caller of a request, and count it. Raise AuthError, or LimitError over a limit."""
        caller = self._callers.of_request(request)
        self._scout.access.count_request(verified_caller(request.scope.get("user")) or Caller())
        if self._authenticated:
            operator = bool(self._operator_scope) and self._operator_scope in caller.scopes
        else:
            operator = request.scope.get(CONSOLE_OPERATOR) is True
        return Requester(scout=self._scout, caller=caller, operator=operator)


async def _anyone(request: Request) -> Requester:
    resolver: RequesterResolver = request.app.state.requesters
    return resolver.of(request)


async def _operator(requester: Annotated[Requester, Depends(_anyone)]) -> Requester:
    """Return an operator, whose acts the audit log names. Raise ForbiddenError for anybody else."""
    if not requester.operator:
        raise ForbiddenError(
            "only operators of this gateway may do this",
            hint="use a key with the operator scope (`toolscout keys create --scope toolscout:operator`), or the "
            "console at / on this machine",
        )
    acting_as(requester.caller)
    return requester


Anyone = Annotated[Requester, Depends(_anyone)]
"""The parameter of a route that every caller may use."""

Operator = Annotated[Requester, Depends(_operator)]
"""The parameter of a route for operators."""
