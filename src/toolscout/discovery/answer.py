"""The end of the walk: matches within the budget, and what the answer says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolscout.discovery.budget import fit_budget
from toolscout.discovery.format import count_tokens, format_match
from toolscout.discovery.suggest import nothing_affordable, nothing_fits
from toolscout.models import Answer, Detail, Facets, Metadata, Overview, Pagination, Query, Ranking, Tool, ToolMatch


def answer_query(
    query: Query,
    ranking: Ranking,
    tools: Mapping[str, Tool],
    overview: Overview,
    degraded: str | None = None,
    down: frozenset[str] = frozenset(),
) -> Answer:
    """Answer with the best of a ranking; with suggestions when nothing fits."""
    matches = [
        ToolMatch(
            tool=tools[item.facets.key],
            score=item.score,
            matched_tags=item.matched_tags,
            relationship=item.relationship,
            explain=item.parts if query.explain else None,
            available=item.facets.server not in down,
        )
        for item in ranking.best
        if item.facets.key in tools
    ]
    fitted = fit_budget(matches, query.detail, query.max_tokens)
    suggestions: tuple[str, ...] = ()
    if matches and not fitted:
        suggestions = nothing_affordable(ranking.matched)
    elif query.ranker and not matches:
        suggestions = nothing_fits(query.text, overview.categories)
    metadata = _metadata(fitted, overview, ranking.matched, query.detail, query.ranker, degraded)
    return Answer(matches=fitted, metadata=metadata, suggestions=suggestions)


def answer_listing(
    shown: Sequence[Facets] | Sequence[Tool],
    tools: Mapping[str, Tool],
    overview: Overview,
    detail: Detail,
    *,
    matched: int,
    pagination: Pagination | None = None,
    suggestions: Sequence[str] = (),
) -> Answer:
    """Answer with tools in their own order, unranked."""
    matches = tuple(ToolMatch(tool=tools[item.key], detail=detail) for item in shown if item.key in tools)
    metadata = _metadata(matches, overview, matched, detail)
    return Answer(matches=matches, metadata=metadata, pagination=pagination, suggestions=tuple(suggestions))


def _metadata(
    matches: tuple[ToolMatch, ...],
    overview: Overview,
    matched: int,
    detail: Detail,
    ranker: str = "",
    degraded: str | None = None,
) -> Metadata:
    tokens = count_tokens([format_match(match) for match in matches])
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
