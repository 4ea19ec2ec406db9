"""From candidates to an ordered list: the requested ranker, its threshold, ties by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolscout.discovery.calibration import fit_of
from toolscout.discovery.diversity import DEPTH, cover_clauses, limit_untrusted, only_trusted
from toolscout.discovery.rankers.boosted import TOP_K_SERVICES, rank_boosted
from toolscout.discovery.rankers.fuzzy import rank_fuzzy
from toolscout.discovery.rankers.hybrid import FLOOR, rank_hybrid
from toolscout.discovery.rankers.keyword import rank_keyword
from toolscout.discovery.rankers.semantic import rank_semantic
from toolscout.discovery.request import UnderstoodRequest
from toolscout.models import Candidates, Facets, Query, Ranked, Ranking

BY_TEXT = ("keyword", "fuzzy")
"""The rankers that read the text of every visible tool. The others score candidates."""
BY_VECTOR = ("semantic", "boosted")
"""The rankers that need vectors."""

_HITS_BEFORE_LIMITS = 100
"""How many hits are ranked before untrusted servers are limited."""


def rank_candidates(query: Query, request: UnderstoodRequest, candidates: Candidates) -> Ranking:
    """Rank by vectors and words."""
    if query.ranker == "semantic":
        return _finish(query, rank_semantic(candidates, query.filter.tags))
    if query.ranker == "boosted":
        return _finish(query, rank_boosted(query.text, candidates, query.top_k_services or TOP_K_SERVICES))
    if all(item.trusted for item in candidates.facets):
        ranking = _rank_and_cover(query, request, candidates)
    else:
        ranking = _rank_with_untrusted(query, request, candidates)
    best = [replace(_with_tags(query, item), fit=fit_of(item.score)) for item in ranking.best[: query.limit]]
    return replace(ranking, best=best)


def rank_texts(query: Query, tools: Sequence[Facets]) -> Ranking:
    """Rank by the text of every tool."""
    ranker = rank_keyword if query.ranker == "keyword" else rank_fuzzy
    return _finish(query, ranker(query.text, tools))


def _rank_and_cover(query: Query, request: UnderstoodRequest, candidates: Candidates) -> Ranking:
    """Score the candidates, and cover the clauses of the request if it has several."""
    if not request.clauses:
        return rank_hybrid(query, request, candidates)
    deep = replace(query, limit=max(query.limit, DEPTH))
    return cover_clauses(rank_hybrid(deep, request, candidates), request, candidates)


def _rank_with_untrusted(query: Query, request: UnderstoodRequest, candidates: Candidates) -> Ranking:
    """Rank all candidates, and the trusted ones by themselves.

    If anything fits among all, the trusted ones are listed down to the floor, whether or not one of them fits.
    """
    deep = replace(query, limit=max(_HITS_BEFORE_LIMITS, 2 * query.limit))
    ranking = _rank_and_cover(deep, request, candidates)
    threshold = FLOOR if query.threshold is None and ranking.best else query.threshold
    trusted = _rank_and_cover(replace(deep, threshold=threshold), request, only_trusted(candidates))
    return limit_untrusted(query, trusted, ranking)


def _finish(query: Query, ranked: list[Ranked]) -> Ranking:
    least = 0.0 if query.threshold is None else query.threshold
    hits = [item for item in ranked if item.score >= least]
    if query.ranker != "keyword":
        hits.sort(key=lambda item: (-item.score, item.facets.key))
    return Ranking(best=[_with_tags(query, item) for item in hits[: query.limit]], matched=len(hits))


def _with_tags(query: Query, item: Ranked) -> Ranked:
    """Name the tags of the filter that the tool has."""
    if not query.filter.tags:
        return item
    tags = {tag.casefold() for tag in query.filter.tags}
    return replace(item, matched_tags=tuple(tag for tag in item.facets.tags if tag.casefold() in tags))
