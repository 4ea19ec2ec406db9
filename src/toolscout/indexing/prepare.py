"""The pure middle of the index walk: raw definitions of one server in, what has to be published out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolscout.errors import BadToolError
from toolscout.indexing.enrich import enrich_tool, stamp_of
from toolscout.indexing.normalize import normalize_tool
from toolscout.indexing.trust import judge
from toolscout.models import Dropped, Entry, Pin, Server, Tool
from toolscout.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One server's part of a publication."""

    server: Server
    entries: tuple[Entry, ...]
    kept: frozenset[str]
    new: int
    changed: int
    removed: int
    dropped: tuple[Dropped, ...]
    quarantined: tuple[Dropped, ...] = ()
    """What is kept from everyone, and why."""
    pins: tuple[Pin, ...] = ()
    """Pins that are new, or know more than before."""
    offered: frozenset[str] = frozenset()
    """Keys whose definition is not the pinned one."""

    @property
    def keys(self) -> frozenset[str]:
        """Return the keys of all that the server has now."""
        return self.kept | {entry.tool.key for entry in self.entries}


def prepare_server(
    server: Server,
    raw: Sequence[Mapping[str, Any]],
    published: Mapping[str, str],
    settings: Settings,
    *,
    owner: str | None = None,
    pins: Mapping[str, Pin] | None = None,
    now: float = 0.0,
) -> Prepared:
    """Normalize and judge every tool, keep what is unchanged, enrich the rest; a bad one is dropped with its reason."""
    dropped: list[Dropped] = []
    tools: dict[str, Tool] = {}
    if len(raw) > settings.max_tools:
        reason = f"it brings {len(raw):,} tools; those after the first {settings.max_tools:,} are left out"
        dropped.append(Dropped(where=server.title, reason=reason))
    for number, item in enumerate(raw[: settings.max_tools], start=1):
        try:
            tool = normalize_tool(item, server, settings, owner=owner)
        except BadToolError as error:
            dropped.append(Dropped(where=_where(server, item, number), reason=error.message))
            continue
        other = tools.get(tool.key)
        if other is not None:
            same = other.fingerprint == tool.fingerprint
            reason = "the same definition comes twice" if same else "another tool of the server has this name"
            dropped.append(Dropped(where=tool.key, reason=reason))
            tool = min(other, tool, key=lambda candidate: candidate.fingerprint)
        tools[tool.key] = tool
    screened, strict = settings.quarantine, settings.strict_definitions
    judged = [
        judge(tool, (pins or {}).get(key), screened=screened, strict=strict, now=now) for key, tool in tools.items()
    ]
    tools = {item.tool.key: item.tool for item in judged}
    kept = frozenset(key for key, tool in tools.items() if published.get(key) == stamp_of(tool))
    enriched = [enrich_tool(tool) for key, tool in sorted(tools.items()) if key not in kept]
    new = sum(entry.tool.key not in published for entry in enriched)
    return Prepared(
        server=server,
        entries=tuple(enriched),
        kept=kept,
        new=new,
        changed=len(enriched) - new,
        removed=len(published.keys() - tools.keys()),
        dropped=tuple(dropped),
        quarantined=tuple(
            Dropped(where=key, reason=tool.quarantine_reason)
            for key, tool in sorted(tools.items())
            if tool.quarantine_reason
        ),
        pins=tuple(item.pin for item in judged if item.pin is not None),
        offered=frozenset(item.tool.key for item in judged if item.changed),
    )


def kept_as_it_was(server: Server, published: Mapping[str, str], reason: str) -> Prepared:
    """Keep what a server had, because it cannot be listed now."""
    return Prepared(
        server=server,
        entries=(),
        kept=frozenset(published),
        new=0,
        changed=0,
        removed=0,
        dropped=(Dropped(where=server.title, reason=reason),),
    )


def _where(server: Server, item: object, number: int) -> str:
    name = item.get("name") if isinstance(item, Mapping) else None
    return f"{server.title}: {str(name)[:80]!r}" if name else f"{server.title}: tool {number}"
