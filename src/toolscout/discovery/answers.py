"""The last stage of discovery: ranked tools become an answer that fits its token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from toolscout.models import Answer, Detail, Facets, Metadata, Overview, Pagination, Query, Ranking, Tool, ToolMatch
from toolscout.text import tokens_of

_LEVELS: tuple[Detail, ...] = ("minimal", "brief", "full")
_BRACKETS = 1
"""Tokens of the list around the hits."""
_LISTED_CATEGORIES = 12
NONE_DOWN: Mapping[str, str] = MappingProxyType({})
"""No server is down."""

_WEAK_ADVICE = (
    "None of these clearly fits. If none does what you need, search again: in other words, with the server or category "
    "by name, or with several phrasings as a list.",
)


def answer_query(
    query: Query,
    ranking: Ranking,
    tools: Mapping[str, Tool],
    overview: Overview,
    degraded: str | None = None,
    down: Mapping[str, str] = NONE_DOWN,
) -> Answer:
    """Answer with the best of a ranking, or with suggestions when nothing fits."""
    matches = [
        ToolMatch(
            tool=tools[item.facets.key],
            score=item.score,
            fit=item.fit,
            matched_tags=item.matched_tags,
            relationship=item.relationship,
            explain=item.parts if query.explain else None,
            available=item.facets.server not in down,
            hint=down.get(item.facets.server, ""),
        )
        for item in ranking.best
        if item.facets.key in tools
    ]
    affordable = fit_budget(matches, query.detail, query.max_tokens)
    suggestions: tuple[str, ...] = ()
    if matches and not affordable:
        suggestions = (f"{ranking.matched:,} tools match, but not one fits in so few tokens. Allow 100 or more.",)
    elif query.ranker and not matches:
        suggestions = _suggest_rewording(query, overview.categories)
    elif affordable and affordable[0].fit == "weak":
        suggestions = _WEAK_ADVICE
    metadata = _metadata(affordable, overview, ranking.matched, query.detail, query.ranker, degraded)
    return Answer(matches=affordable, metadata=metadata, suggestions=suggestions)


def answer_unranked(
    items: Sequence[Facets] | Sequence[Tool],
    tools: Mapping[str, Tool],
    overview: Overview,
    detail: Detail,
    *,
    matched: int,
    pagination: Pagination | None = None,
    suggestions: Sequence[str] = (),
) -> Answer:
    """Answer with tools in the order given, without scores."""
    matches = tuple(ToolMatch(tool=tools[item.key], detail=detail) for item in items if item.key in tools)
    metadata = _metadata(matches, overview, matched, detail)
    return Answer(matches=matches, metadata=metadata, pagination=pagination, suggestions=tuple(suggestions))


def fit_budget(matches: Sequence[ToolMatch], detail: Detail, max_tokens: int | None) -> tuple[ToolMatch, ...]:
    """Show as many hits as the budget allows, then give the best ones more detail, up to the one asked for.

    Hits that do not fit even as minimal are omitted, so the answer never exceeds the budget.
    """
    if max_tokens is None:
        return tuple(replace(match, detail=detail) for match in matches)
    budget = max_tokens - _BRACKETS
    fitted: list[ToolMatch] = []
    for match in matches:
        minimal = replace(match, detail="minimal")
        if _cost(minimal) > budget:
            break
        budget -= _cost(minimal)
        fitted.append(minimal)
    for level in _LEVELS[1 : _LEVELS.index(detail) + 1]:
        for place, match in enumerate(fitted):
            fuller = replace(match, detail=level)
            increase = _cost(fuller) - _cost(match)
            if increase > budget:
                break
            budget -= increase
            fitted[place] = fuller
    return tuple(fitted)


def _cost(match: ToolMatch) -> int:
    """Count the tokens of a hit and of the comma behind it."""
    return tokens_of(match.json_size) + 1


def _suggest_rewording(query: Query, categories: Sequence[str]) -> tuple[str, ...]:
    """Say what to try when there is no tool to show."""
    if query.threshold is not None:
        return (f"No tool reaches the threshold {query.threshold:g}. Lower it, or omit it.",)
    suggestions = [f"No tool fits {query.text[:80]!r}. Say what it should do in other or more general words."]
    if categories:
        more = ", ..." if len(categories) > _LISTED_CATEGORIES else ""
        suggestions.append(f"There are tools for: {', '.join(categories[:_LISTED_CATEGORIES])}{more}.")
    return tuple(suggestions)


def _metadata(
    matches: tuple[ToolMatch, ...],
    overview: Overview,
    matched: int,
    detail: Detail,
    ranker: str = "",
    degraded: str | None = None,
) -> Metadata:
    separators = max(len(matches) - 1, 0) + len("[]")
    tokens = tokens_of(sum(match.json_size for match in matches) + separators)
    return Metadata(
        total=overview.total,
        matched=matched,
        returned=len(matches),
        tokens=tokens,
        tokens_saved=max(overview.tokens - tokens, 0),
        ranker=ranker,
        detail=detail,
        categories_available=overview.categories,
        degraded=degraded,
        stale=overview.stale,
    )
