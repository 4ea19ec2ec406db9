"""Queries, and the evidence from which an answer is made."""

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
ToolSort = Literal["key", "-key", "name", "-name", "server", "-server", "category", "-category", "tokens", "-tokens"]
Fit = Literal["strong", "likely", "weak"]
"""How sure a hit is: `strong` is right nine times in ten, `likely` about every second time, `weak` seldom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a search is limited to. A store applies it inside its search, never afterwards."""

    tags: tuple[str, ...] = ()
    match: Match = "any"
    category: str | None = None
    servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One need of a request: the words and the vector to search for. Without an embedder there is no vector."""

    text: str
    terms: tuple[str, ...]
    vector: FloatArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The candidates of a search with their evidence, as columns. Column j of every matrix belongs to `facets[j]`.

    `cosine` is [intents, candidates]. `impact` and `fields` are [terms, candidates], in the order of `terms`, which
    are the distinct terms of all intents. `frequency` counts the visible tools that contain each term, and `visible`
    counts all visible tools. If `with_vectors` is false, every cosine is 0.
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
    """One tool with its score, between the stages of the discovery pipeline."""

    facets: Facets
    score: float
    fit: Fit | None = None
    """Only `hybrid` is calibrated, so only its hits have one."""
    matched_tags: tuple[str, ...] = ()
    parts: Mapping[str, Any] = field(default_factory=dict)
    relationship: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The best tools in order, at least as many as requested, and how many matched in all."""

    best: Sequence[Ranked]
    matched: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query: its text, its filter, how to rank the tools and how to present them."""

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
    """The options of a search beside tags and top_k. `Scout.search_tools` documents them."""

    match: Match
    category: str | None
    servers: Sequence[str] | None
    limit: int | None
    threshold: float | None
    detail: Detail
    max_tokens: int | None
    ranker: str | None
    explain: bool
    top_k_services: int | None
    caller: Caller
