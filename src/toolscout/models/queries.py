"""What is asked, and the evidence on the way to an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from toolscout.models.catalogue import Facets
from toolscout.models.tools import Caller

if TYPE_CHECKING:
    from toolscout.models.arrays import ByteArray, FloatArray, IntArray

Detail = Literal["minimal", "brief", "full"]
Match = Literal["any", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a request narrows its search to; it is applied inside the store's search, never after it."""

    tags: tuple[str, ...] = ()
    match: Match = "any"
    category: str | None = None
    servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One need of a request: the words and the vector to look for (no vector when the embedder is down)."""

    text: str
    terms: tuple[str, ...]
    vector: FloatArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Filtered evidence from a store, as columns: row j of every array is `facets[j]`.

    `cosine` is [intents, rows]. `impact` and `fields` are [terms, rows], one line for each distinct term of the
    intents, in the order of `terms`; `frequency` counts the visible tools that hold the term, out of `visible`. Without
    vectors (`with_vectors`), every cosine is 0.
    """

    facets: tuple[Facets, ...]
    cosine: FloatArray
    terms: tuple[str, ...]
    impact: FloatArray
    fields: ByteArray
    frequency: IntArray
    visible: int
    with_vectors: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One scored tool on its way through the discovery walk."""

    facets: Facets
    score: float
    matched_tags: tuple[str, ...] = ()
    parts: Mapping[str, Any] = field(default_factory=dict)
    relationship: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The best tools in order, at least as many as were asked for, and how many there are in all."""

    best: Sequence[Ranked]
    matched: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked: one text, how to narrow it, how to rank and how to show it."""

    text: str
    filter: Filter = Filter()
    ranker: str = "hybrid"
    limit: int = 10
    threshold: float | None = None
    detail: Detail = "brief"
    max_tokens: int | None = None
    explain: bool = False
    top_k_services: int | None = None


class SearchOptions(TypedDict, total=False):
    """What a search may be given beside its query; `Scout.search_tools` says what each means."""

    tags: Sequence[str] | None
    match: Match
    category: str | None
    servers: Sequence[str] | None
    top_k: int
    threshold: float | None
    detail: Detail
    max_tokens: int | None
    ranker: str | None
    explain: bool
    top_k_services: int | None
    caller: Caller
