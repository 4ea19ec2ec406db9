"""The call pipeline: find the tool, check policy and limits, check the arguments, send once, write one audit line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolscout.errors import (
    DefinitionChangedError,
    NotAllowedError,
    NotReadOnlyError,
    ToolNotFoundError,
    ToolscoutError,
)
from toolscout.execution.argument_check import check_arguments
from toolscout.models import LOCAL, Caller, CallResult, Filter, Scope, Tool
from toolscout.policy.limits import Limits
from toolscout.policy.rules import Rules
from toolscout.ports import Isolation, Store, ToolSource, Upstream
from toolscout.telemetry import AuditLog, shape_of

_REFUSED = frozenset(
    {"tool_not_found", "not_allowed", "limit_reached", "not_read_only", "definition_changed", "audit_unavailable"}
)
"""Outcomes that the audit log counts as refusals. In all of them, nothing was sent."""

SourceOf = Callable[[Scope, str], ToolSource]
"""A function that returns the source of a server's tools in a scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPipeline:
    """Runs tool calls with a store, the sources of its servers, access rules, limits and an audit log."""

    store: Store
    source_of: SourceOf
    rules: Rules
    limits: Limits
    audit: AuditLog
    isolation: Isolation

    async def run(
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
        """Call a tool exactly once, or raise an error that says why it was not called.

        A key that does not exist and one that the caller may not see raise the same error.
        """
        started, tool, outcome = time.perf_counter(), None, "cancelled"
        try:
            tool = (await self.store.tools(caller, [key])).get(key)
            if tool is None:
                raise ToolNotFoundError(f"no tool has the key {key!r}")
            self._check_policy(caller, tool)
            self.audit.check_required()
            with self.limits.call(caller, key):
                source = self.source_of(Scope(tenant=tool.tenant, owner=tool.owner), tool.server)
                sent = time.perf_counter()
                check_definition(tool, version=version, read_only=read_only)
                checked, repairs = await check_arguments(tool, arguments, self.isolation)
                raw = await source.call_tool(tool.name, checked, caller=caller, upstream=upstream, extra=extra)
            took_ms = (time.perf_counter() - sent) * 1_000
            result = CallResult(tool=tool, result=raw, repairs=repairs, took_ms=took_ms)
            outcome = _outcome(result)
            return result
        except ToolscoutError as error:
            outcome = error.code
            raise
        except Exception:
            outcome = "error"
            raise
        finally:
            self._write_audit(caller, key, tool, arguments, outcome, started)

    async def callable_servers(self, caller: Caller) -> frozenset[str]:
        """Return the servers with a tool that the caller may call. The caller may use their resources and prompts too.

        Without a policy, everyone in the local tenant may use all servers, also those without tools.
        """
        if self.rules.policy is None and caller.tenant == LOCAL and caller.servers is not None:
            return caller.servers
        servers: set[str] = set()
        for tool in await self.store.facets(caller, Filter()):
            if tool.server not in servers and self.rules.may_call(caller, tool):
                servers.add(tool.server)
        return frozenset(servers)

    def _check_policy(self, caller: Caller, tool: Tool) -> None:
        if not self.rules.may_call(caller, tool):
            raise NotAllowedError(
                f"you may see {tool.key}, but not call it",
                hint="ask the operator: `toolscout policy check` shows which rule decides; nothing was sent",
            )

    def _write_audit(
        self, caller: Caller, key: str, tool: Tool | None, arguments: Any, outcome: str, started: float
    ) -> None:
        self.audit.write_call(
            caller,
            str(key),
            fingerprint=tool.fingerprint if tool else None,
            refused=outcome in _REFUSED,
            outcome=outcome,
            ms=(time.perf_counter() - started) * 1_000,
            arguments=shape_of(arguments, tool.input_schema if tool else {}),
        )


def check_definition(tool: Tool, *, version: str | None, read_only: bool) -> None:
    """Refuse a call for an outdated definition, and a call of a writing tool through `call_read_tool`."""
    if version and not tool.fingerprint.startswith(version):
        raise DefinitionChangedError(
            f"{tool.key} has changed since version {version}: it is {tool.version} now",
            hint="read the new schema and call again with its version; nothing was sent",
            details={"version": tool.version, "description": tool.description, "input_schema": tool.input_schema},
        )
    if read_only and not tool.read_only:
        raise NotReadOnlyError(
            f"{tool.key} is not declared read-only by a trusted server",
            hint="use call_tool, which the host may ask you to approve; nothing was sent",
        )


def _outcome(result: CallResult) -> str:
    if result.is_error:
        return "tool_error"
    return "input_required" if result.result.get("resultType") == "input_required" else "ok"
