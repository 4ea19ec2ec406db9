"""What indexing produces and a store keeps."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolscout.models.tools import Document, Scope, Server, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A tool or a line that could not be indexed, and why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule of the screen found in a definition, where, and an excerpt that is safe to print."""

    rule: str
    reason: str
    where: str
    excerpt: str
    severity: Literal["quarantine", "notice"]


FIELDS = ("name", "server", "description", "parameters", "labels", "keywords")
"""The fields of a tool that are searched by words. Bit n of a field mask stands for field n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The distinct words of a tool as columns: the weight of each, and a bit mask of the fields that it is in."""

    words: tuple[str, ...]
    impact: array[float]
    fields: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A tool ready to be published: its words, the document that is embedded, and the hash of that document."""

    tool: Tool
    document: Document
    text_hash: str
    terms: Terms
    tokens: int
    stamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One new generation of a scope. It replaces all tools of its servers, except those in `unchanged_keys`.

    With `everywhere`, other scopes get a new generation too, because vectors were made for their tools. `switches`
    are an operator's decisions from an archive, so that a tool that was switched off there is off here too.
    """

    scope: Scope
    servers: tuple[Server, ...]
    entries: tuple[Entry, ...]
    unchanged_keys: frozenset[str]
    model_id: str
    everywhere: bool = False
    switches: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """The counts of an indexing run. `dropped`, `collisions`, `look_alikes` and `quarantined` give the reasons."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    embedded: int = 0
    unembedded: int = 0
    dropped: tuple[Dropped, ...] = ()
    collisions: tuple[Dropped, ...] = ()
    look_alikes: tuple[Dropped, ...] = ()
    """Tools whose name can be mistaken for that of another tool of their server."""
    quarantined: tuple[Dropped, ...] = ()
    offered: tuple[str, ...] = ()
    """Keys of tools whose definition is not the one that was approved, or else seen first."""
    generation: int = 0
    took_ms: float = 0.0
    listed: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    """Tenant and key of every tool of the indexed servers, so that merged reports count each once."""

    @property
    def total(self) -> int:
        """How many tools of the indexed servers are in the catalogue now."""
        return self.new + self.changed + self.unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The fields of a tool that browsing, filtering and ranking need. Schemas stay in the store."""

    key: str
    id: str
    server: str
    server_title: str
    name: str
    title: str
    description: str
    category: str
    tags: tuple[str, ...]
    keywords: tuple[str, ...]
    related: tuple[str, ...]
    tenant: str
    owner: str | None
    enabled: bool
    trusted: bool
    tokens: int
    read_only: bool = False
    quarantine_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The totals of what a caller may see."""

    total: int
    tokens: int
    categories: tuple[str, ...]
    generation: int
    model_id: str
    stale: bool = False
    servers: tuple[str, ...] = ()
