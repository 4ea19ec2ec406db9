"""The execute walk from its first stage to its last: route, policy, limits, call, and one audit line always."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolscout.errors import NotAllowedError, ToolNotFoundError, ToolscoutError
from toolscout.execution.call import call
from toolscout.models import LOCAL, Caller, CallResult, Filter, Scope, Tool
from toolscout.policy.limits import Limits
from toolscout.policy.rules import Rules
from toolscout.ports import Store, ToolSource, Upstream
from toolscout.telemetry import AuditLog, shape_of

_REFUSED = frozenset({"tool_not_found", "not_allowed", "limit_reached", "not_read_only", "definition_changed"})

Behind = Callable[[Scope, str], ToolSource]
"""What stands behind a server of a scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute:
    """What executing needs: where tools are found, who may call them, how often, and where that is written down."""

    store: Store
    behind: Behind
    rules: Rules
    limits: Limits
    audit: AuditLog

    async def call(
        self,
        key: str,
        arguments: Any,
        *,
        caller: Caller,
        version: str | None,
        read_only: bool,
        upstream: Upstream | None,
        extra: Mapping[str, Any] | None,
    ) -> CallResult:
        """Call a tool, exactly once, or raise what says why not."""
        started, tool, outcome = time.perf_counter(), None, "cancelled"
        try:
            tool = (await self.store.tools(caller, [key])).get(key)
            if tool is None:
                raise ToolNotFoundError(f"no tool has the key {key!r}")
            self._check(caller, tool)
            with self.limits.call(caller, key):
                result = await call(
                    self.behind(Scope(tenant=tool.tenant, owner=tool.owner), tool.server),
                    tool,
                    arguments,
                    caller=caller,
                    version=version,
                    read_only=read_only,
                    upstream=upstream,
                    extra=extra,
                )
            outcome = _outcome(result)
            return result
        except ToolscoutError as error:
            outcome = error.code
            raise
        except Exception:
            outcome = "error"
            raise
        finally:
            self._write(caller, key, tool, arguments, outcome, started)

    async def reach(self, caller: Caller) -> frozenset[str]:
        """Return the servers that a caller may call a tool of: what else these offer is then theirs as well.

        Without a policy everyone of the local tenant reaches all of them, also those that have no tools.
        """
        if self.rules.policy is None and caller.tenant == LOCAL and caller.servers is not None:
            return caller.servers
        found: set[str] = set()
        for tool in await self.store.facets(caller, Filter()):
            if tool.server not in found and self.rules.may_call(caller, tool):
                found.add(tool.server)
        return frozenset(found)

    def _check(self, caller: Caller, tool: Tool) -> None:
        if not self.rules.may_call(caller, tool):
            raise NotAllowedError(
                f"you may see {tool.key}, and may not call it",
                hint="ask the operator: `toolscout policy check` says which rule decides; nothing was sent",
            )

    def _write(self, caller: Caller, key: str, tool: Tool | None, arguments: Any, outcome: str, started: float) -> None:
        self.audit.write_call(
            caller,
            str(key),
            fingerprint=tool.fingerprint if tool else None,
            refused=outcome in _REFUSED,
            outcome=outcome,
            ms=(time.perf_counter() - started) * 1_000,
            arguments=shape_of(arguments, tool.input_schema if tool else {}),
        )


def _outcome(result: CallResult) -> str:
    if result.is_error:
        return "tool_error"
    return "input_required" if result.result.get("resultType") == "input_required" else "ok"
