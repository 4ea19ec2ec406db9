"""Prepare one server for publication: raw definitions in, entries to publish out. Pure, no input or output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolscout.errors import BadToolError
from toolscout.indexing.enrich import enrich_tool, stamp_of
from toolscout.indexing.normalize import normalize_tool
from toolscout.indexing.trust import judge_tool
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

    @property
    def keys(self) -> frozenset[str]:
        """Return the keys of all tools that the server has now."""
        return self.unchanged | {entry.tool.key for entry in self.entries}


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
    tools, dropped = _normalize_all(server, definitions, settings, owner, live=live)
    judged = [
        judge_tool(
            tool,
            (pins or {}).get(key),
            screened=settings.quarantine,
            strict=settings.strict_definitions,
            now=now,
        )
        for key, tool in sorted(tools.items())
    ]
    unchanged = frozenset(item.tool.key for item in judged if stamps.get(item.tool.key) == stamp_of(item.tool))
    entries = tuple(enrich_tool(item.tool) for item in judged if item.tool.key not in unchanged)
    new = sum(entry.tool.key not in stamps for entry in entries)
    return PreparedServer(
        server=server,
        entries=entries,
        unchanged=unchanged,
        new=new,
        changed=len(entries) - new,
        removed=len(stamps.keys() - tools.keys()),
        dropped=dropped,
        quarantined=tuple(
            Dropped(where=item.tool.key, reason=item.tool.quarantine_reason)
            for item in judged
            if item.tool.quarantine_reason
        ),
        pins=tuple(item.pin for item in judged if item.pin is not None),
        changed_definitions=frozenset(item.tool.key for item in judged if item.changed),
    )


def unchanged_server(server: Server, stamps: Mapping[str, str], reason: str) -> PreparedServer:
    """Keep all published tools of a server that cannot be listed now, and report why."""
    return PreparedServer(
        server=server,
        entries=(),
        unchanged=frozenset(stamps),
        dropped=(Dropped(where=server.title, reason=reason),),
    )


def _normalize_all(
    server: Server, definitions: Sequence[Mapping[str, Any]], settings: Settings, owner: str | None, *, live: bool
) -> tuple[dict[str, Tool], tuple[Dropped, ...]]:
    """Return the tools by key. Of two with one key, the smaller fingerprint wins, so that their order has no effect."""
    tools: dict[str, Tool] = {}
    dropped: list[Dropped] = []
    limit = settings.max_tools
    if len(definitions) > limit:
        reason = f"it brings {len(definitions):,} tools; those after the first {limit:,} are left out"
        dropped.append(Dropped(where=server.title, reason=reason))
    for number, definition in enumerate(definitions[:limit], start=1):
        try:
            tool = normalize_tool(definition, server, settings, owner=owner, live=live)
        except BadToolError as error:
            dropped.append(Dropped(where=_describe_place(server, definition, number), reason=error.message))
            continue
        other = tools.get(tool.key)
        if other is not None:
            same = other.fingerprint == tool.fingerprint
            reason = "the same definition comes twice" if same else "another tool of the server has this name"
            dropped.append(Dropped(where=tool.key, reason=reason))
            tool = min(other, tool, key=lambda candidate: candidate.fingerprint)
        tools[tool.key] = tool
    return tools, tuple(dropped)


def _describe_place(server: Server, definition: object, number: int) -> str:
    name = definition.get("name") if isinstance(definition, Mapping) else None
    return f"{server.title}: {str(name)[:80]!r}" if name else f"{server.title}: tool {number}"
