"""What indexing makes and a store keeps."""

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
    """What a rule of the screen found in a definition: where, and an excerpt that is harmless to print."""

    rule: str
    reason: str
    where: str
    excerpt: str
    severity: Literal["quarantine", "notice"]


FIELDS = ("name", "server", "description", "parameters", "labels")
"""The fields of a tool that words are found in: bit n of a mask is field n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A tool's distinct words as columns: how strongly each stands for it, and in which fields (a bit mask)."""

    words: tuple[str, ...]
    impact: array[float]
    fields: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A tool ready to be published: its words, and the document whose vector stands for it, under its hash."""

    tool: Tool
    document: Document
    text_hash: str
    terms: Terms
    tokens: int
    stamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One new generation of a scope: whole servers replaced, with what is `kept` of them because nothing changed.

    `everywhere` says that vectors were made for other scopes too, so that these show a new generation as well.
    `switches` are decisions that come along when a catalogue moves: no tool shows that was switched off elsewhere.
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
    """What indexing did, counted; `dropped`, `collisions` and `quarantined` say why."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    embedded: int = 0
    unembedded: int = 0
    dropped: tuple[Dropped, ...] = ()
    collisions: tuple[Dropped, ...] = ()
    quarantined: tuple[Dropped, ...] = ()
    offered: tuple[str, ...] = ()
    """Keys of tools whose definition is not the one that was approved, or seen first."""
    generation: int = 0
    took_ms: float = 0.0

    @property
    def total(self) -> int:
        """How many tools of the indexed servers are in the catalogue now."""
        return self.new + self.changed + self.unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """What browsing, filtering and the documented rankers read of a tool; schemas stay in the store."""

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
    """What a caller can see, in sum."""

    total: int
    tokens: int
    categories: tuple[str, ...]
    generation: int
    model_id: str
    stale: bool = False
    servers: tuple[str, ...] = ()
