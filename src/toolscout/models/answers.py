"""What is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from toolscout.models.queries import Detail
from toolscout.models.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMatch:
    """A hit: the tool, its score on the ranker's own scale (None where nothing was ranked), and why."""

    tool: Tool
    score: float | None = None
    matched_tags: tuple[str, ...] = ()
    relationship: str | None = None
    explain: Mapping[str, Any] | None = None
    detail: Detail = "brief"
    available: bool = True

    @property
    def call_with(self) -> str:
        """The name of the gateway tool that may call this one."""
        return "call_read_tool" if self.tool.read_only else "call_tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What an answer says of itself."""

    total: int
    matched: int
    returned: int = 0
    took_ms: float = 0.0
    tokens: int = 0
    tokens_saved: int = 0
    ranker: str = ""
    detail: Detail = "brief"
    categories_available: tuple[str, ...] = ()
    degraded: str | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pagination:
    """Which page of a listing this is."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Sequence[ToolMatch]):
    """A sequence of ToolMatch, with what there is to say about it."""

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
        """Walk the matches, best first."""
        return iter(self.matches)

    def timed(self, took_ms: float) -> Answer:
        """Return the same answer with its duration filled in."""
        return replace(self, metadata=replace(self.metadata, took_ms=round(took_ms, 3)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A category that the caller can see, with how many tools it holds."""

    name: str
    count: int
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A tag that the caller can see, with how many tools carry it."""

    name: str
    count: int
