"""The call pipeline: find the tool, check policy and limits, check the arguments, send once, write one audit line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolscout.compact_json import result_size
from toolscout.errors import (
    DefinitionChangedError,
    NotAllowedError,
    NotReadOnlyError,
    ToolscoutError,
)
from toolscout.execution.argument_check import check_arguments
from toolscout.models import LOCAL, Caller, CallResult, Filter, Scope, Tool
from toolscout.policy.limits import Limits
from toolscout.policy.rules import Rules
from toolscout.ports import Isolation, Store, TimedSource, ToolSource, Upstream
from toolscout.suggestions import tool_not_found
from toolscout.telemetry import AuditLog, shape_of, span

_REFUSED = frozenset(
    {"tool_not_found", "not_allowed", "limit_reached", "not_read_only", "definition_changed", "audit_unavailable"}
)
"""Outcomes that the audit log counts as refusals. In all of them, nothing was sent."""

_UNTIMED_CHECK_S = 10.0
"""How long the check of arguments and the wait for it may take if a source has no deadline of its own."""

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
        started, tool, result, outcome = time.perf_counter(), None, None, "cancelled"
        with span("execute_tool", {"gen_ai.operation.name": "execute_tool"}) as current:
            try:
                tool = (await self.store.tools(caller, [key])).get(key)
                if tool is None:
                    raise await tool_not_found(key, await self.store.facets(caller, Filter()))
                current.rename(f"execute_tool {tool.key}")
                current.set({"gen_ai.tool.name": tool.name, "toolscout.server": tool.server})
                self._check_policy(caller, tool)
                self.audit.check_required()
                with self.limits.call(caller, key):
                    source = self.source_of(Scope(tenant=tool.tenant, owner=tool.owner), tool.server)
                    check_definition(tool, version=version, read_only=read_only)
                    result = await self._check_and_send(
                        tool, source, arguments, caller=caller, upstream=upstream, extra=extra
                    )
                outcome = _outcome(result)
                if outcome == "tool_error":
                    current.fail(outcome)
                return result
            except ToolscoutError as error:
                outcome = error.code
                raise
            except Exception:
                outcome = "error"
                raise
            finally:
                self._write_audit(caller, key, tool, arguments, result, outcome, started)

    async def _check_and_send(
        self,
        tool: Tool,
        source: ToolSource,
        arguments: Any,
        *,
        caller: Caller,
        upstream: Upstream | None,
        extra: Mapping[str, Any] | None,
    ) -> CallResult:
        """Check the arguments, then send them once. Both together have the time that the source gives a call."""
        started = time.perf_counter()
        timed = source if isinstance(source, TimedSource) else None
        limit_s = timed.timeout_s if timed else _UNTIMED_CHECK_S
        checked, repairs = await check_arguments(tool, arguments, self.isolation, caller=caller, within_s=limit_s)
        if timed:
            left_s = limit_s - (time.perf_counter() - started)
            raw = await timed.call_tool_within(
                tool.name, checked, within_s=left_s, caller=caller, upstream=upstream, extra=extra
            )
        else:
            raw = await source.call_tool(tool.name, checked, caller=caller, upstream=upstream, extra=extra)
        took_ms = (time.perf_counter() - started) * 1_000
        return CallResult(tool=tool, result=raw, repairs=repairs, took_ms=took_ms, size=result_size(raw))

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
        self,
        caller: Caller,
        key: str,
        tool: Tool | None,
        arguments: Any,
        result: CallResult | None,
        outcome: str,
        started: float,
    ) -> None:
        self.audit.write_call(
            caller,
            str(key),
            server=tool.server if tool else "",
            fingerprint=tool.fingerprint if tool else None,
            refused=outcome in _REFUSED,
            outcome=outcome,
            ms=(time.perf_counter() - started) * 1_000,
            arguments=shape_of(arguments, tool.input_schema if tool else {}),
            result_bytes=None if result is None else result.size,
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
