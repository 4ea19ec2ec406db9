"""Decisions of an operator: tools are switched on or off, and definitions are approved or kept out.

Every decision survives re-indexing and leaves an audit line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from toolscout.discovery.checks import check_detail
from toolscout.errors import DefinitionChangedError, StoreError, ToolNotFoundError
from toolscout.indexing.publish import read_pins
from toolscout.indexing.trust import change_of, shown_version, write_pin
from toolscout.models import (
    KEPT_OUT,
    Answer,
    Caller,
    Change,
    Detail,
    Metadata,
    Pin,
    Scope,
    Tool,
    ToolMatch,
    Verdict,
)
from toolscout.ports import Store
from toolscout.scout.indexer import Indexer
from toolscout.scout.inventory import Inventory
from toolscout.suggestions import did_you_mean, tool_not_found
from toolscout.telemetry import AuditLog
from toolscout.tool_keys import split_key


class Decisions:
    """What an operator decides about the tools of a scope."""

    def __init__(self, store: Store, indexer: Indexer, audit: AuditLog) -> None:
        self._store = store
        self._indexer = indexer
        self._audit = audit
        self.inventory = Inventory(store)
        """All tools, also those that are switched off or withheld."""

    async def switch(self, scope: Scope, keys: Sequence[str], enabled: bool) -> None:
        """Switch tools on or off, all or none. It waits for no lease: a tool can be switched off at any time."""
        servers = {split_key(key)[0] for key in keys}
        known = {key for server in servers for key in await self._store.stamps(scope, server)}
        for key in keys:
            if key not in known:
                raise await tool_not_found(key, await self._store.stored_tools(scope))
        await self._store.set_enabled(scope, keys, enabled)
        await asyncio.to_thread(self._record_switches, scope, keys, enabled)  # there may be thousands

    def _record_switches(self, scope: Scope, keys: Sequence[str], enabled: bool) -> None:
        for key in keys:
            self._audit.write_act("tools.enable" if enabled else "tools.disable", scope, tool=key)

    async def switched_off(
        self, caller: Caller, *, detail: Detail = "minimal", category: str | None = None, server: str | None = None
    ) -> Answer:
        """List the tools of the caller and their tenant that are off, by hand or by the config, in order of keys."""
        check_detail(detail)
        tools: dict[str, Tool] = {}
        for scope in (Scope(tenant=caller.tenant), caller.scope):
            switches = await self._store.switches(scope)
            for tool in await self._store.stored_tools(scope):
                tools[tool.key] = replace(tool, enabled=switches.get(tool.key, tool.enabled))
        matches = tuple(
            ToolMatch(tool=tool, detail=detail)
            for _, tool in sorted(tools.items())
            if not tool.enabled
            and server in (None, tool.server, tool.server_title)
            and (category is None or category.casefold() == tool.category.casefold())
        )
        count = len(matches)
        return Answer(matches=matches, metadata=Metadata(total=count, matched=count, returned=count))

    async def changes(self, scope: Scope | None = None) -> list[Change]:
        """Return the tools of a scope, or of all, whose definition is not the pinned one or that are in quarantine."""
        changes: list[Change] = []
        for item in [scope] if scope else await self._store.scopes():
            pins = await read_pins(self._store, item)
            candidates = [change_of(item, tool, pins.get(tool.key)) for tool in await self._store.stored_tools(item)]
            changes += [change for change in candidates if change is not None]
        return changes

    async def decide(self, scope: Scope, keys: Sequence[str], verdict: Verdict) -> list[Tool]:
        """Approve definitions, or keep tools out, all or none.

        What is approved is what was shown: a tool that waits for a decision is approved as `KEY@VERSION`, with the
        version of its `Change`. A tool without a change is approved, and any tool is kept out, by its key alone.
        """
        tools = await self._find(scope, keys, verdict)
        async with self._indexer.leases.hold(scope, {tool.server for tool in tools.values()}) as leases:
            stored_tools = {tool.key: tool for tool in await self._store.stored_tools(scope)}
            if any(stored_tools.get(key) != tool for key, tool in tools.items()):
                raise StoreError("a definition changed in the meantime; nothing was decided", hint="look at it again")
            await self._pin(scope, tools.values(), verdict)
            reason = KEPT_OUT if verdict == "kept_out" else ""
            new_tools = [replace(tool, quarantine_reason=reason) for tool in tools.values()]
            await self._indexer.republish(new_tools, stored_tools, leases)
        act = "definitions.keep_out" if verdict == "kept_out" else "definitions.approve"
        for tool in new_tools:
            self._audit.write_act(act, scope, tool=tool.key, fingerprint=tool.fingerprint)
        return new_tools

    async def _find(self, scope: Scope, keys: Sequence[str], verdict: Verdict) -> dict[str, Tool]:
        tools = {tool.key: tool for tool in await self._store.stored_tools(scope)}
        pins = await read_pins(self._store, scope)
        chosen: dict[str, Tool] = {}
        for item in keys:
            key, version = (item, "") if item in tools else _split_version(item)
            if key not in tools:
                raise ToolNotFoundError(
                    f"no tool has the key {key!r}",
                    hint="`toolscout changes` shows what waits for a decision; nothing was decided",
                    suggestions=did_you_mean(key, tools),
                )
            change = change_of(scope, tools[key], pins.get(key)) if verdict == "approved" else None
            _check_version(tools[key], version, waits=change is not None)
            chosen[key] = tools[key]
        return chosen

    async def _pin(self, scope: Scope, tools: Iterable[Tool], verdict: Verdict) -> None:
        pins = await read_pins(self._store, scope)
        records = []
        for tool in tools:
            pin = pins.get(tool.key, Pin(key=tool.key, fingerprint=""))
            new_pin = replace(pin, fingerprint=tool.fingerprint, verdict=verdict, at=time.time(), before=None)
            records.append(write_pin(scope, new_pin))
        await self._store.put_records(records)


def _split_version(item: str) -> tuple[str, str]:
    """Split `KEY@VERSION`. A key may itself contain an `@`."""
    key, separator, version = item.rpartition("@")
    return (key, version) if separator else (item, "")


def _check_version(tool: Tool, version: str, *, waits: bool) -> None:
    """Refuse to decide about another definition than the operator has seen."""
    current = shown_version(tool)
    if version and version != current:
        raise DefinitionChangedError(
            f"{tool.key} is not at version {version} any more; nothing was decided",
            hint="`toolscout changes` shows what it is now",
        )
    if waits and not version:
        raise DefinitionChangedError(
            f"{tool.key} waits for a decision, and an approval must name the version that you saw; nothing was decided",
            hint=f"look at it with `toolscout changes`, then: toolscout approve {tool.key}@{current}",
        )
