"""Distinct and fair: a copy stands behind what it copies, and servers that nobody vouches for never fill the answer.

Anyone may write a description that fits everything, or take a popular tool's own. So, for tools of servers that are
not trusted:

- one that says nearly the same as a tool of another server goes behind all distinct hits; a trusted tool that is
  copied stands where the best of its copies would have stood;
- of the first 5 places they hold at most 2 together, as long as trusted tools fit, and a single server holds at most 2
  as long as tools of other servers do.

A request that names such a server, or a filter that asks for it, lifts both rules for it. A score compares a tool with
the best of the candidates, so trusted tools are scored without the others: no stranger moves their order or their
scores. What is moved is scored just below what it was moved behind, so that the order of the scores stays the order
of the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from toolscout.models import Candidates, Facets, Query, Ranked, Ranking
from toolscout.text import split_words

PLACES, MOST = 5, 2
"""Of the first 5 hits, at most 2 come from servers that are not trusted."""
ALIKE = 0.7
"""Two tools are copies when so much of what either says is said by both: words in common by words in all."""

FITS = 0.002
"""When even the best trusted tool scores less, none fits, and none keeps a stranger from the first places."""
ENOUGH = 0.035
"""What a tool must score to keep a stranger from a place where none of the trusted ones fits."""

_COMPARED = 16
_READ = 2_000
_COMMON = 3
_JUST_BELOW = 0.999


def crowded(candidates: Candidates) -> bool:
    """Tell whether untrusted tools are most of the candidates: then trusted ones may have found no room among them."""
    trusted = sum(item.trusted for item in candidates.facets)
    return 0 < len(candidates.facets) - trusted > trusted


def only_trusted(candidates: Candidates) -> Candidates:
    """Return the candidates of trusted servers, to be scored as if there were no others."""
    rows = [row for row, item in enumerate(candidates.facets) if item.trusted]
    return replace(
        candidates,
        facets=tuple(candidates.facets[row] for row in rows),
        cosine=candidates.cosine[:, rows],
        impact=candidates.impact[:, rows],
        fields=candidates.fields[:, rows],
    )


def spread(query: Query, trusted: Ranking, everything: Ranking) -> Ranking:
    """Merge the hits of trusted servers, ranked by themselves, with the others, within their bounds."""
    hits = [*trusted.best, *(item for item in everything.best if not item.facets.trusted)]
    hits.sort(key=lambda item: (-item.score, item.facets.key))
    bound = _bound(query, hits)
    if bound:
        hits = _in_order(_shared(*_folded(hits, bound), bound))
    return Ranking(best=hits[: query.limit], matched=max(len(hits), everything.matched))


def _bound(query: Query, hits: Sequence[Ranked]) -> frozenset[str]:
    """Return the servers that the rules are for: not trusted, and neither named nor filtered for."""
    if query.filter.servers:
        return frozenset()
    trusted = [_said(item.facets) for item in hits if item.facets.trusted][:_COMPARED]
    request = f" {' '.join(split_words(query.text))} "
    return frozenset(
        facets.server
        for facets in {item.facets.server: item.facets for item in hits if not item.facets.trusted}.values()
        if not any(_names(request, title, trusted) for title in (facets.server, facets.server_title))
    )


def _names(request: str, title: str, trusted: Iterable[frozenset[str]]) -> bool:
    """Tell whether a request holds a server's name, unless it is a word that several trusted tools use as well."""
    words = split_words(title)
    if not words or f" {' '.join(words)} " not in request:
        return False
    return sum(said.issuperset(words) for said in trusted) < _COMMON


def _folded(hits: Sequence[Ranked], bound: frozenset[str]) -> tuple[list[Ranked], list[Ranked]]:
    """Part the distinct hits from the copies; an original that is trusted takes the best place of its copies."""
    strangers = [place for place, item in enumerate(hits) if item.facets.server in bound][:_COMPARED]
    vouched = [place for place, item in enumerate(hits) if item.facets.server not in bound][:_COMPARED]
    said = {place: (hits[place].facets.server, _said(hits[place].facets)) for place in (*vouched, *strangers)}
    taken: dict[int, int] = {}
    copies: dict[int, Ranked] = {}
    for place in strangers:
        earlier = (other for other in strangers if other < place and other not in copies)
        original = next((other for other in (*vouched, *earlier) if _alike(*said[place], *said[other])), -1)
        if original >= 0:
            taken[original] = min(place, taken.get(original, original))
            copies[place] = _moved(hits[place], f"says what {hits[original].facets.key} says")
    distinct = [place for place in range(len(hits)) if place not in copies]
    distinct.sort(key=lambda place: taken.get(place, place))
    lifted = [
        replace(hits[place], score=hits[taken[place]].score) if place in taken else hits[place] for place in distinct
    ]
    return lifted, list(copies.values())


def _shared(distinct: Sequence[Ranked], copies: Sequence[Ranked], bound: frozenset[str]) -> list[Ranked]:
    """Choose who holds the first places; then all others follow in order, and copies last."""
    stranger = [item.facets.server in bound for item in distinct]
    held: Counter[str] = Counter()
    first: set[int] = set()
    trusted = max((item.score for item in distinct if item.facets.trusted), default=0.0)
    for most, least in ((MOST, 0.0 if trusted >= FITS else ENOUGH), (PLACES, ENOUGH)):
        for place, item in enumerate(distinct):
            server, free = item.facets.server, len(first) < PLACES and place not in first
            may = not stranger[place] or (held.total() < most and held[server] < MOST)
            if free and may and item.score >= least:
                first.add(place)
                held[server] += stranger[place]
    why = f"its server is not trusted, and {MOST} of the first {PLACES} are of such servers"
    rest = [
        _moved(item, why) if stranger[place] and place < max(first, default=0) else item
        for place, item in enumerate(distinct)
        if place not in first
    ]
    return [*(distinct[place] for place in sorted(first)), *rest, *copies]


def _in_order(hits: Sequence[Ranked]) -> list[Ranked]:
    """Score what was moved just below what it stands behind now."""
    ordered: list[Ranked] = []
    for item in hits:
        if ordered and item.score > ordered[-1].score:
            item = replace(item, score=ordered[-1].score * _JUST_BELOW)
        ordered.append(item)
    return ordered


def _moved(item: Ranked, why: str) -> Ranked:
    parts: Mapping[str, Any] = {**item.parts, "moved": why} if item.parts else item.parts
    return replace(item, parts=parts)


def _alike(server: str, mine: frozenset[str], other: str, theirs: frozenset[str]) -> bool:
    least, most = sorted((len(mine), len(theirs)))
    if server == other or least < ALIKE * most:
        return False
    common = len(mine & theirs)
    return common >= ALIKE * (least + most - common)


def _said(facets: Facets) -> frozenset[str]:
    return _words(facets.name, facets.description[:_READ])


@lru_cache(maxsize=8_192)
def _words(name: str, description: str) -> frozenset[str]:
    return frozenset(split_words(f"{name} {description}"))
