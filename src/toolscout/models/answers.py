"""Answers: the tools that a request found, and one JSON shape for them on every surface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, overload

from toolscout.models.queries import Detail, Fit
from toolscout.models.signature import signature
from toolscout.models.tools import Tool
from toolscout.text import json_size, shorten


@dataclass(frozen=True, kw_only=True)
class ToolMatch:
    """One hit: the tool, its score on the ranker's own scale (None if nothing was ranked), and why it is here."""

    tool: Tool
    score: float | None = None
    fit: Fit | None = None
    """How sure it is, in a word. Only hits of `hybrid` have one."""
    matched_tags: tuple[str, ...] = ()
    relationship: str | None = None
    explain: Mapping[str, Any] | None = None
    detail: Detail = "brief"
    available: bool = True
    hint: str = ""
    """What a person does to make it available again, for example sign in."""

    @property
    def call_with(self) -> str:
        """The name of the gateway tool that may call this one."""
        return "call_read_tool" if self.tool.read_only else "call_tool"

    @cached_property
    def json_size(self) -> int:
        """How many characters `to_dict` has as compact JSON. Cached: budget and metadata both need it."""
        return json_size(self._written)

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON: `minimal` names the tool, `brief` is enough to choose it, `full` to call it."""
        return dict(self._written)

    @cached_property
    def _written(self) -> dict[str, Any]:
        tool, detail = self.tool, self.detail
        written: dict[str, Any] = {"key": tool.key, "call_with": self.call_with}
        if self.score is not None:
            written["score"] = round(self.score, 4)
        if self.fit is not None:
            written["fit"] = self.fit
        if detail != "minimal":
            written |= {
                "version": tool.version,
                "server": tool.server,
                "name": tool.name,
                "description": tool.description if detail == "full" else shorten(tool.description),
                "signature": signature(tool.input_schema),
                "category": tool.category,
                "tags": list(tool.tags),
                "matched_tags": list(self.matched_tags),
            }
        if not self.available:
            written["available"] = False
            written |= {"hint": self.hint} if self.hint else {}
        if self.relationship is not None:
            written["relationship"] = self.relationship
        if detail == "full":
            written["input_schema"] = tool.input_schema
            if tool.examples:
                written["examples"] = list(tool.examples)
        if self.explain is not None:
            written["explain"] = dict(self.explain)
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Facts about an answer: counts, duration, tokens, ranker, and whether it is degraded or stale."""

    total: int
    matched: int
    returned: int = 0
    took_ms: float = field(default=0.0, compare=False)
    tokens: int = 0
    tokens_saved: int = 0
    ranker: str = ""
    detail: Detail = "brief"
    categories_available: tuple[str, ...] = ()
    degraded: str | None = None
    """Why the answer was found by words alone, or None."""
    stale: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the metadata as JSON."""
        return {
            "total": self.total,
            "matched": self.matched,
            "returned": self.returned,
            "took_ms": self.took_ms,
            "tokens": self.tokens,
            "tokens_saved": self.tokens_saved,
            "ranker": self.ranker,
            "detail": self.detail,
            "categories_available": list(self.categories_available),
            "degraded": self.degraded,
            "stale": self.stale,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pagination:
    """Which page of a list this is."""

    page: int
    page_size: int
    total_tools: int

    @property
    def total_pages(self) -> int:
        """How many pages there are."""
        return -(-self.total_tools // self.page_size)

    @property
    def has_next(self) -> bool:
        """Whether a page follows."""
        return self.page < self.total_pages

    @property
    def has_prev(self) -> bool:
        """Whether a page comes before."""
        return self.page > 1

    def to_dict(self) -> dict[str, Any]:
        """Return the page and the totals as JSON."""
        return {
            **asdict(self),
            "total_pages": self.total_pages,
            "has_next": self.has_next,
            "has_prev": self.has_prev,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Sequence[ToolMatch]):
    """The hits of a request, best first, as a sequence of ToolMatch, and facts about them."""

    matches: tuple[ToolMatch, ...]
    metadata: Metadata
    pagination: Pagination | None = None
    suggestions: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> ToolMatch: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ToolMatch, ...]: ...
    def __getitem__(self, index: int | slice) -> ToolMatch | tuple[ToolMatch, ...]:
        """Return the match, or matches, at that place."""
        return self.matches[index]

    def __len__(self) -> int:
        """Count the matches."""
        return len(self.matches)

    def __iter__(self) -> Iterator[ToolMatch]:
        """Iterate over the matches, best first."""
        return iter(self.matches)

    def timed(self, took_ms: float) -> Answer:
        """Return the same answer with its duration filled in."""
        return replace(self, metadata=replace(self.metadata, took_ms=round(took_ms, 3)))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON, in the shape that the command line and the gateway show."""
        written: dict[str, Any] = {
            "tools": [match.to_dict() for match in self.matches],
            "metadata": self.metadata.to_dict(),
        }
        if self.pagination is not None:
            written["pagination"] = self.pagination.to_dict()
        if self.suggestions:
            written["suggestions"] = list(self.suggestions)
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A category that the caller can see, with the number of its tools."""

    name: str
    count: int
    description: str

    def to_dict(self) -> dict[str, Any]:
        """Return the category as JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A tag that the caller can see, with the number of its tools."""

    name: str
    count: int

    def to_dict(self) -> dict[str, Any]:
        """Return the tag as JSON."""
        return asdict(self)
