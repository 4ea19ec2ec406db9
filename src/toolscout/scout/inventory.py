"""All tools of a tenant as an operator sees them: also those that are switched off or withheld."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from cachetools import LRUCache

from toolscout.discovery.browse import listed_text
from toolscout.indexing.publish import read_pins
from toolscout.indexing.trust import change_of
from toolscout.models import Caller, Change, Pin, Scope, Tool
from toolscout.ports import Store
from toolscout.text import count_tokens, shorten

_SCOPES_KEPT = 64

ToolState = Literal["enabled", "disabled", "withheld"]
ToolRisk = Literal["reads", "writes", "destroys"]
InventorySort = Literal["key", "-key", "server", "-server", "tokens", "-tokens", "state", "-state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryRow:
    """One tool: enough for a table of thousands."""

    key: str
    server: str
    name: str
    description: str
    category: str
    tags: tuple[str, ...]
    version: str
    tokens: int
    state: ToolState
    reason: str
    """Why it is withheld, or ""."""
    risk: ToolRisk
    """What it does to the world, as far as its server says."""
    trusted: bool
    text: str
    """What a filter by words looks at."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON."""
        return {name: value for name, value in asdict(self).items() if name != "text"} | {"tags": list(self.tags)}


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryFilter:
    """Which rows to show, and in which order."""

    text: str = ""
    """Every word must be in the key, the description, the category or a tag."""
    server: str | None = None
    category: str | None = None
    state: ToolState | None = None
    sort: InventorySort = "key"
    """A minus in front reverses the order."""


@dataclass(frozen=True, slots=True)
class _Listing:
    """What one generation of a scope holds. The rows are in the order of keys, and know nothing of switches."""

    generation: int
    rows: tuple[InventoryRow, ...]
    changes: tuple[Change, ...]


class Inventory:
    """The tools of each scope and what waits for a decision, read again when the generation has changed.

    Reading 15,000 tools takes about a second, and a page asks with every key that a person types.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listings: LRUCache[Scope, _Listing] = LRUCache(_SCOPES_KEPT)
        self._switched: LRUCache[Scope, tuple[object, tuple[InventoryRow, ...]]] = LRUCache(_SCOPES_KEPT)
        self._lock = asyncio.Lock()

    async def rows(self, scope: Scope, narrow: InventoryFilter) -> list[InventoryRow]:
        """Return the rows of a scope that fit."""
        words = narrow.text.casefold().split()
        chosen = [
            row
            for row in await self._with_switches(scope)
            if narrow.server in (None, row.server)
            and narrow.category in (None, row.category)
            and narrow.state in (None, row.state)
            and all(word in row.text for word in words)
        ]
        field, descending = narrow.sort.removeprefix("-"), narrow.sort.startswith("-")
        if field != "key":
            chosen.sort(key=lambda row: getattr(row, field), reverse=descending)
        elif descending:
            chosen.reverse()
        return chosen

    async def changes(self) -> list[Change]:
        """Return what `Decisions.changes` returns for all scopes."""
        scopes = await self._store.scopes()
        return [change for scope in scopes for change in (await self._listing(scope)).changes]

    async def _with_switches(self, scope: Scope) -> tuple[InventoryRow, ...]:
        listing, switches = await self._listing(scope), await self._store.switches(scope)
        state = (listing.generation, dict(switches))
        known = self._switched.get(scope)
        if known is None or known[0] != state:
            rows = tuple(_switch(row, switches[row.key]) if row.key in switches else row for row in listing.rows)
            known = self._switched[scope] = (state, rows)
        return known[1]

    async def _listing(self, scope: Scope) -> _Listing:
        async with self._lock:
            generation = (await self._store.overview(Caller(tenant=scope.tenant, user=scope.owner))).generation
            known = self._listings.get(scope)
            if known is None or known.generation != generation:
                tools = await self._store.stored_tools(scope)
                pins = await read_pins(self._store, scope)
                known = await asyncio.to_thread(_list, generation, scope, tools, pins)
                self._listings[scope] = known
            return known


def _list(generation: int, scope: Scope, tools: Sequence[Tool], pins: Mapping[str, Pin]) -> _Listing:
    changes = (change_of(scope, tool, pins.get(tool.key)) for tool in tools)
    rows = sorted(map(_row, tools), key=lambda row: row.key)
    return _Listing(generation, tuple(rows), tuple(change for change in changes if change is not None))


def _row(tool: Tool) -> InventoryRow:
    return InventoryRow(
        key=tool.key,
        server=tool.server,
        name=tool.name,
        description=shorten(tool.description),
        category=tool.category,
        tags=tool.tags,
        version=tool.version,
        tokens=definition_tokens(tool),
        state="withheld" if tool.quarantine_reason else "enabled" if tool.enabled else "disabled",
        reason=tool.quarantine_reason,
        risk=risk_of(tool),
        trusted=tool.trusted,
        text=listed_text(tool),
    )


def _switch(row: InventoryRow, enabled: bool) -> InventoryRow:
    if row.state == "withheld":
        return row
    return replace(row, state="enabled" if enabled else "disabled")


def definition_tokens(tool: Tool) -> int:
    """Return how many tokens the definition would take in a prompt."""
    definition = {"name": tool.key, "description": tool.description, "input_schema": tool.input_schema}
    return count_tokens(definition)


def risk_of(tool: Tool) -> ToolRisk:
    """Return what a tool does to the world. Without a word of its server, it may write."""
    if tool.read_only:
        return "reads"
    return "destroys" if tool.annotations.get("destructiveHint") is True else "writes"
