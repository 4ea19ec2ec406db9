"""Prepare one server for publication: raw definitions in, entries to publish out. Pure, no input or output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolscout.errors import BadToolError
from toolscout.indexing.enrich import enrich_tool, stamp_of
from toolscout.indexing.look_alikes import find_look_alikes
from toolscout.indexing.normalize import normalize_tool, not_kept
from toolscout.indexing.trust import JudgedTool, Screening, judge_tool, screen_once
from toolscout.models import Dropped, Entry, Pin, Server, Tool
from toolscout.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedServer:
    """One server's part of a publication."""

    server: Server
    entries: tuple[Entry, ...]
    """Tools that are new or changed."""
    unchanged: frozenset[str]
    """Keys of tools that are published already under the same stamp."""
    new: int = 0
    changed: int = 0
    removed: int = 0
    dropped: tuple[Dropped, ...] = ()
    quarantined: tuple[Dropped, ...] = ()
    pins: tuple[Pin, ...] = ()
    """Pins to store: first seen now, or screened again."""
    changed_definitions: frozenset[str] = frozenset()
    """Keys of tools whose definition differs from the pinned one."""
    look_alikes: tuple[Dropped, ...] = ()
    """Tools whose name can be mistaken for that of another tool of the server."""

    @property
    def keys(self) -> frozenset[str]:
        """Return the keys of all tools that the server has now."""
        return self.unchanged | {entry.tool.key for entry in self.entries}


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogued:
    """What the catalogue has of a server: the stamps of its tools, and their pins."""

    stamps: Mapping[str, str] = field(default_factory=dict)
    pins: Mapping[str, Pin] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedTool:
    """A definition after the work on its text, which can be slow. What is decided about it comes later."""

    tool: Tool
    screening: Screening | None
    entry: Entry | None = None
    """What to publish. None if that seems to be in the catalogue already."""


def prepare_server(
    server: Server,
    definitions: Sequence[Mapping[str, Any]],
    stamps: Mapping[str, str],
    settings: Settings,
    *,
    owner: str | None = None,
    live: bool = False,
    pins: Mapping[str, Pin] | None = None,
    now: float = 0.0,
) -> PreparedServer:
    """Normalize and judge every definition, and enrich those whose stamp is not among the published `stamps`.

    A definition that cannot be indexed is dropped with its reason. The other tools of the server are not affected.
    """
    catalogued = Catalogued(stamps=stamps, pins=pins or {})
    bounded, dropped = bound_number(server, definitions, settings)
    examined = examine(bounded, server, catalogued, settings, owner=owner, live=live)
    return assemble(server, examined, catalogued, settings, now=now, dropped=dropped)


def bound_number(
    server: Server, definitions: Sequence[Mapping[str, Any]], settings: Settings
) -> tuple[Sequence[Mapping[str, Any]], tuple[Dropped, ...]]:
    """Leave out what is beyond the largest number of tools."""
    limit = settings.max_tools
    if len(definitions) <= limit:
        return definitions, ()
    reason = f"it brings {len(definitions):,} tools; those after the first {limit:,} are left out"
    return definitions[:limit], (Dropped(where=server.title, reason=reason),)


def examine(
    definitions: Sequence[Mapping[str, Any]],
    server: Server,
    catalogued: Catalogued,
    settings: Settings,
    *,
    owner: str | None,
    live: bool,
    first: int = 1,
) -> list[ExaminedTool | Dropped]:
    """Normalize, screen and enrich definitions. `first` is the number of the first, for one without a name."""
    results: list[ExaminedTool | Dropped] = []
    for number, definition in enumerate(definitions, start=first):
        try:
            tool = normalize_tool(definition, server, settings, owner=owner, live=live)
        except BadToolError as error:
            results.append(Dropped(where=describe_place(server, definition, number), reason=error.message))
            continue
        pin = catalogued.pins.get(tool.key)
        screening = screen_once(tool, pin, not_kept(definition)) if settings.quarantine else None
        judged = _judge(tool, pin, settings, screening).tool
        unchanged = catalogued.stamps.get(tool.key) == stamp_of(judged)
        results.append(ExaminedTool(tool=tool, screening=screening, entry=None if unchanged else enrich_tool(judged)))
    return results


def assemble(
    server: Server,
    examined: Sequence[ExaminedTool | Dropped],
    catalogued: Catalogued,
    settings: Settings,
    *,
    now: float,
    dropped: Sequence[Dropped] = (),
) -> PreparedServer:
    """Decide about each tool by its pin, and put the server's part of a publication together."""
    tools, collisions = _by_key(examined)
    judged, entries, unchanged = [], [], set()
    for key, item in sorted(tools.items()):
        pin, later = catalogued.pins.get(key), bool(catalogued.pins)
        decision = _judge(item.tool, pin, settings, item.screening, now=now, later=later)
        judged.append(decision)
        stamp = stamp_of(decision.tool)
        if catalogued.stamps.get(key) == stamp:
            unchanged.add(key)
        elif item.entry is not None:
            tool = replace(item.entry.tool, quarantine_reason=decision.tool.quarantine_reason)
            entries.append(replace(item.entry, tool=tool, stamp=stamp))
        else:
            entries.append(enrich_tool(decision.tool))
    new = sum(entry.tool.key not in catalogued.stamps for entry in entries)
    return PreparedServer(
        server=server,
        entries=tuple(entries),
        unchanged=frozenset(unchanged),
        new=new,
        changed=len(entries) - new,
        removed=len(catalogued.stamps.keys() - tools.keys()),
        dropped=(*dropped, *collisions),
        quarantined=tuple(
            Dropped(where=item.tool.key, reason=item.tool.quarantine_reason)
            for item in judged
            if item.tool.quarantine_reason
        ),
        pins=tuple(item.pin for item in judged if item.pin is not None),
        changed_definitions=frozenset(item.tool.key for item in judged if item.changed),
        look_alikes=find_look_alikes(item.tool for item in judged),
    )


def _judge(
    tool: Tool,
    pin: Pin | None,
    settings: Settings,
    screening: Screening | None,
    *,
    now: float = 0.0,
    later: bool = False,
) -> JudgedTool:
    screened, strict = settings.quarantine, settings.strict_definitions
    return judge_tool(tool, pin, screened=screened, strict=strict, now=now, screening=screening, later=later)


def unchanged_server(server: Server, stamps: Mapping[str, str], reason: str) -> PreparedServer:
    """Keep all published tools of a server that cannot be listed now, and report why."""
    return PreparedServer(
        server=server,
        entries=(),
        unchanged=frozenset(stamps),
        dropped=(Dropped(where=server.title, reason=reason),),
    )


def _by_key(examined: Sequence[ExaminedTool | Dropped]) -> tuple[dict[str, ExaminedTool], list[Dropped]]:
    """Return the tools by key. Of two with one key, the smaller fingerprint wins, so that their order has no effect."""
    tools: dict[str, ExaminedTool] = {}
    dropped: list[Dropped] = []
    for item in examined:
        if isinstance(item, Dropped):
            dropped.append(item)
            continue
        other = tools.get(item.tool.key)
        if other is not None:
            same = other.tool.fingerprint == item.tool.fingerprint
            reason = "the same definition comes twice" if same else "another tool of the server has this name"
            dropped.append(Dropped(where=item.tool.key, reason=reason))
        tools[item.tool.key] = min(filter(None, (other, item)), key=lambda candidate: candidate.tool.fingerprint)
    return tools, dropped


def describe_place(server: Server, definition: object, number: int) -> str:
    """Name a definition that has no key: by its name, or else by its number."""
    name = definition.get("name") if isinstance(definition, Mapping) else None
    return f"{server.title}: {str(name)[:80]!r}" if name else f"{server.title}: tool {number}"
