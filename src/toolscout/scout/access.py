"""The access policy in force: replaced while callers are served, and explained to an operator."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from toolscout.errors import AuditError, LimitError, NotAllowedError, PolicyError, ToolNotFoundError, ToolscoutError
from toolscout.models import Caller, Filter, Scope, Server, ServerStatus
from toolscout.policy.limits import Limits
from toolscout.policy.policy_file import Act, Policy
from toolscout.policy.rules import Decision, Rules
from toolscout.policy.server_items import ServerItem
from toolscout.ports import Store
from toolscout.scout.item_screen import ItemScreen
from toolscout.suggestions import did_you_mean, tool_not_found
from toolscout.telemetry import AuditLog, shape_of
from toolscout.tool_keys import tool_key


class Access:
    """Who may see and call what."""

    def __init__(self, store: Store, rules: Rules, limits: Limits, audit: AuditLog, screen: ItemScreen) -> None:
        self._store = store
        self._rules = rules
        self._limits = limits
        self._audit = audit
        self._screen = screen

    @property
    def policy_version(self) -> int:
        """Return a number that grows with every policy that is applied."""
        return self._rules.version

    def apply_policy(self, policy: Policy | None) -> None:
        """Replace the policy, for every search and call from now on."""
        self._rules.apply(policy)
        self._limits.apply(policy)
        self._audit.write_act("policy.apply", source=policy.source if policy else None)

    def refuse_policy(self, error: PolicyError) -> None:
        """Record that a policy file is broken. The policy in force stays in force."""
        self._audit.write_act("policy.refuse", reason=error.message)

    async def explain(self, caller: Caller, key: str, act: Act) -> Decision:
        """Return whether a caller may see or call a tool, and which rule decides."""
        keys: set[str] = set()
        for scope in dict.fromkeys((caller.scope, Scope(tenant=caller.tenant))):
            switches = await self._store.switches(scope)
            for tool in await self._store.stored_tools(scope):
                keys.add(tool.key)
                if tool.key == key:
                    enabled = switches.get(key, tool.enabled)
                    return self._rules.explain(caller, replace(tool, enabled=enabled), act)
        return Decision(allowed=False, because="there is no such tool", suggestions=did_you_mean(key, keys))

    async def may_call(self, caller: Caller, key: str) -> bool:
        """Return whether a caller may call a tool now."""
        tool = (await self._store.tools(caller, [key])).get(key)
        return tool is not None and self._rules.may_call(caller, tool)

    async def visible_servers(self, caller: Caller, statuses: Sequence[ServerStatus]) -> list[ServerStatus]:
        """Return the servers with a tool that a caller may see, and of their state what concerns the caller."""
        counts = Counter(tool.server for tool in await self._store.facets(caller, Filter()))
        return [
            ServerStatus(
                server=status.server,
                title=status.title,
                state=status.state,
                tools=counts[status.server],
                hint=status.hint if status.state == "needs_login" else "",
            )
            for status in statuses
            if status.server in counts
        ]

    async def record_feedback(self, caller: Caller, query: str, key: str, *, success: bool) -> None:
        """Write the audit line of a caller who says whether a tool did what a request asked for.

        Raise ToolNotFoundError if they may not see it. The line has the length of the request, not its text.
        """
        tool = (await self._store.tools(caller, [key])).get(key)
        if tool is None:
            raise await tool_not_found(key, await self._store.facets(caller, Filter()))
        self._audit.write(
            "feedback",
            tenant=caller.tenant,
            user=caller.user,
            key_id=caller.key,
            tool=key,
            fingerprint=tool.fingerprint,
            outcome="helped" if success else "did_not_help",
            arguments=shape_of({"query": query}, {"properties": {"query": {}}}),
        )

    def count_request(self, caller: Caller) -> None:
        """Count one HTTP request of a caller. Raise LimitError if it exceeds the limit of the policy."""
        self._limits.count_request(caller)

    def denies_server(self, caller: Caller, server: Server) -> bool:
        """Return whether a rule denies a caller all tools of a server, whichever it has."""
        return self._rules.denies(caller, tool_key(server.key, ""), server.key, server.title)

    def may_use(self, caller: Caller, item: ServerItem, *, calls_tools: bool) -> bool:
        """Return whether a caller may use a resource or a prompt. `calls_tools`: they may call a tool of its server."""
        return self._rules.may_use(caller, item, calls_tools=calls_tools)

    async def withheld(self, server: Server, items: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return for each resource or prompt that a server lists why its text withholds it, "" if it does not."""
        return await self._screen.reasons(server, items)

    async def has_servers(self, caller: Caller) -> bool:
        """Tell whether the caller or their tenant has a server, whether or not they may see its tools."""
        return any([await self._store.servers(scope) for scope in {caller.scope, Scope(tenant=caller.tenant)}])

    @asynccontextmanager
    async def server_request(self, caller: Caller, server: Server, method: str) -> AsyncIterator[None]:
        """Hold a request for a resource, a prompt or a completion to the rules, the limits and the audit of calls.

        It counts as a call of `SERVER__METHOD`, for instance `files__resources/read`. Deny rules and limits can name it
        so. That the caller may use the resource or prompt at all is checked before.
        """
        key, started, outcome = tool_key(server.key, method), time.perf_counter(), "cancelled"
        try:
            if self._rules.denies(caller, key, server.key, server.title):
                raise NotAllowedError(f"you may not use {key}", hint="ask the operator; nothing was sent")
            self._audit.check_required()
            with self._limits.call(caller, key):
                yield
            outcome = "ok"
        except ToolscoutError as error:
            outcome = error.code
            raise
        except Exception:
            outcome = "error"
            raise
        finally:
            self._audit.write_call(
                caller,
                key,
                server=server.key,
                fingerprint=None,
                refused=outcome in (NotAllowedError.code, LimitError.code, AuditError.code),
                outcome=outcome,
                ms=(time.perf_counter() - started) * 1_000,
                arguments=shape_of({}, {}),
            )

    def record_act(self, act: str, server: str) -> None:
        """Write the audit line of an operator's act on a live server."""
        self._audit.write_act(act, server=server)

    def record_unlisted_call(self, caller: Caller, name: str, arguments: Any) -> None:
        """Write the audit line for a call to a name that the caller may not see. The call is not made."""
        self._audit.write_call(
            caller,
            name,
            server="",
            fingerprint=None,
            refused=True,
            outcome=ToolNotFoundError.code,
            ms=0.0,
            arguments=shape_of(arguments, {}),
        )
