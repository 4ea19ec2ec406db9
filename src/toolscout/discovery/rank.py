"""From evidence to an ordered list: the ranker that was asked for, its threshold, ties by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolscout.discovery.cover import DEPTH, cover, has_needs
from toolscout.discovery.rankers.boosted import TOP_K_SERVICES, rank_boosted
from toolscout.discovery.rankers.fuzzy import rank_fuzzy
from toolscout.discovery.rankers.hybrid import FLOOR, rank_hybrid
from toolscout.discovery.rankers.keyword import rank_keyword
from toolscout.discovery.rankers.semantic import rank_semantic
from toolscout.discovery.spread import only_trusted, spread
from toolscout.models import Candidates, Facets, Intent, Query, Ranked, Ranking

BY_TEXT = ("keyword", "fuzzy")
"""The rankers that read every visible tool's text; the others score candidates."""

_WIDE = 100


def rank_candidates(query: Query, intents: Sequence[Intent], candidates: Candidates) -> Ranking:
    """Rank by vectors and words."""
    if query.ranker == "semantic":
        return _finish(query, rank_semantic(candidates, query.filter.tags))
    if query.ranker == "boosted":
        return _finish(query, rank_boosted(query.text, candidates, query.top_k_services or TOP_K_SERVICES))
    if all(item.trusted for item in candidates.facets):
        ranking = _rank_hybrid(query, intents, candidates)
    else:
        ranking = _among_strangers(query, intents, candidates)
    return replace(ranking, best=[_tagged(query, item) for item in ranking.best[: query.limit]])


def _rank_hybrid(query: Query, intents: Sequence[Intent], candidates: Candidates) -> Ranking:
    """Score the candidates; where a request has several needs, see to it that they are covered."""
    if not has_needs(intents):
        return rank_hybrid(query, intents, candidates)
    wide = replace(query, limit=max(query.limit, DEPTH))
    return cover(rank_hybrid(wide, intents, candidates), intents, candidates)


def _among_strangers(query: Query, intents: Sequence[Intent], candidates: Candidates) -> Ranking:
    """Rank all, and trusted tools by themselves as well; once anything fits, the floor alone decides what is listed."""
    wide = replace(query, limit=max(_WIDE, 2 * query.limit))
    everything = _rank_hybrid(wide, intents, candidates)
    least = FLOOR if query.threshold is None and everything.best else query.threshold
    trusted = _rank_hybrid(replace(wide, threshold=least), intents, only_trusted(candidates))
    return spread(query, trusted, everything)


def rank_texts(query: Query, tools: Sequence[Facets]) -> Ranking:
    """Rank by the text of every tool."""
    ranker = rank_keyword if query.ranker == "keyword" else rank_fuzzy
    return _finish(query, ranker(query.text, tools))


def _finish(query: Query, ranked: list[Ranked]) -> Ranking:
    least = 0.0 if query.threshold is None else query.threshold
    kept = [item for item in ranked if item.score >= least]
    if query.ranker != "keyword":
        kept.sort(key=lambda item: (-item.score, item.facets.key))
    return Ranking(best=[_tagged(query, item) for item in kept[: query.limit]], matched=len(kept))


def _tagged(query: Query, item: Ranked) -> Ranked:
    """Name the tags that were asked for and are there."""
    if not query.filter.tags:
        return item
    wanted = {tag.casefold() for tag in query.filter.tags}
    return replace(item, matched_tags=tuple(tag for tag in item.facets.tags if tag.casefold() in wanted))
