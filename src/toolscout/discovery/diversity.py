"""Diversity: reorder hits so that they cover a request, and so that untrusted servers never fill the answer.

*Several needs.* A hit counts a little less for every better hit that serves the same clause. It counts a little more
the better the best hit of its server is, since a request with two needs often needs both from one server. The hits
change places by that. The scores stay at their places, so that they mean the same as before.

*Untrusted servers.* Anyone may write a description that fits everything, or copy that of a popular tool. So, for tools
of servers that are not trusted:

- one that says nearly the same as a tool of another server goes behind all distinct hits, and a trusted tool that is
  copied takes the place of the best of its copies;
- of the first 5 places they hold at most 2 together, as long as trusted tools fit, and a single server holds at most 2
  as long as tools of other servers fit.

A request that names such a server, or a filter for it, lifts both rules for it. A score compares a tool with the best
of the candidates, so trusted tools are scored without the others: an untrusted tool changes neither their order nor
their scores. A hit that is put behind others gets a score just below theirs, so that the order of the scores stays the
order of the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from toolscout.discovery.request import UnderstoodRequest
from toolscout.models import LOCAL, Candidates, Facets, Query, Ranked, Ranking
from toolscout.text import split_words

if TYPE_CHECKING:
    from toolscout.models import FloatArray

REPEATED = 0.64
"""What a hit loses, in log odds, for every hit before it that serves the same clause."""
SAME_SERVER = 0.2
"""How much a tool loses of the difference, in log odds, between the best hit and the best hit of its own server."""
DEPTH = 40
"""How many of the best hits may change places to cover the clauses."""

PLACES, MOST = 5, 2
"""Of the first 5 hits, at most 2 come from servers that are not trusted."""
ALIKE = 0.7
"""Two tools are copies if this share of their words is common to both (words in common by words in all)."""
FITS = 0.002
"""If even the best trusted tool scores less, none fits, and untrusted tools may have the first places."""
ENOUGH = 0.035
"""The score that keeps an untrusted tool from a place if none of the trusted ones fits."""

_COMPARED = 16
_COMPARED_CHARACTERS = 2_000
_COMMON = 3
_JUST_BELOW = 0.999


def cover_clauses(ranking: Ranking, request: UnderstoodRequest, candidates: Candidates) -> Ranking:
    """Reorder the hits so that the first ones cover the clauses of the request."""
    hits = list(ranking.best[:DEPTH])
    if not request.clauses or len(hits) < 2:
        return ranking
    values = _values(hits)
    queues: dict[int, list[int]] = {}
    for place, clause in enumerate(_best_clauses(hits, request, candidates)):
        queues.setdefault(clause, []).append(place)
    for places in queues.values():
        places.sort(key=lambda place: (-values[place], place))
    served = dict.fromkeys(queues, 0)
    order: list[int] = []
    while len(order) < len(hits):
        waiting = [clause for clause, places in queues.items() if served[clause] < len(places)]
        heads = {clause: queues[clause][served[clause]] for clause in waiting}
        best = max(waiting, key=lambda clause: (values[heads[clause]] - REPEATED * served[clause], -heads[clause]))
        served[best] += 1
        order.append(heads[best])
    reason = "for the other needs of the request"
    reordered = [
        hits[old] if old == new else _explain(replace(hits[old], score=hits[new].score), reason)
        for new, old in enumerate(order)
    ]
    return replace(ranking, best=[*reordered, *ranking.best[DEPTH:]])


def _best_clauses(hits: Sequence[Ranked], request: UnderstoodRequest, candidates: Candidates) -> list[int]:
    """Return the clause that each hit serves best: by cosine, or by words if there are no vectors."""
    row_of = {item.key: row for row, item in enumerate(candidates.facets)}
    rows = [row_of[item.facets.key] for item in hits]
    if candidates.with_vectors:
        fit: FloatArray = candidates.cosine[1:]
    else:
        terms = [[term in clause.terms for term in candidates.terms] for clause in request.clauses]
        fit = np.array(terms, dtype=np.float32) @ candidates.impact
    share = fit / np.maximum(fit.max(axis=1, keepdims=True), 0.1)
    clauses: list[int] = share[:, rows].argmax(axis=0).tolist()
    return clauses


def _values(hits: Sequence[Ranked]) -> list[float]:
    """Return the log odds of hits, reduced for servers whose best hit is behind the best of all."""
    odds = [_log_odds(item.score) for item in hits]
    best: dict[str, float] = {}
    for item, value in zip(hits, odds, strict=True):
        best[item.facets.server] = max(value, best.get(item.facets.server, value))
    top = max(odds)
    return [
        value if item.facets.server == LOCAL else value + SAME_SERVER * (best[item.facets.server] - top)
        for item, value in zip(hits, odds, strict=True)
    ]


def _log_odds(score: float) -> float:
    score = min(max(score, 1e-9), 1 - 1e-9)
    return log(score / (1 - score))


def is_crowded(candidates: Candidates) -> bool:
    """Tell whether most candidates are untrusted. Then there may have been no room for trusted ones."""
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


def limit_untrusted(query: Query, trusted: Ranking, ranking: Ranking) -> Ranking:
    """Merge the trusted hits, ranked by themselves, with the untrusted hits of a ranking, within their limits."""
    hits = [*trusted.best, *(item for item in ranking.best if not item.facets.trusted)]
    hits.sort(key=lambda item: (-item.score, item.facets.key))
    servers = _limited_servers(query, hits)
    if servers:
        hits = _lower_scores(_share_places(*_separate_copies(hits, servers), servers))
    return Ranking(best=hits[: query.limit], matched=max(len(hits), ranking.matched))


def _limited_servers(query: Query, hits: Sequence[Ranked]) -> frozenset[str]:
    """Return the servers that the rules apply to: not trusted, and neither named nor filtered for."""
    if query.filter.servers:
        return frozenset()
    trusted = [_words_of(item.facets) for item in hits if item.facets.trusted][:_COMPARED]
    request = f" {' '.join(split_words(query.text))} "
    return frozenset(
        facets.server
        for facets in {item.facets.server: item.facets for item in hits if not item.facets.trusted}.values()
        if not any(_is_named(title, request, trusted) for title in (facets.server, facets.server_title))
    )


def _is_named(title: str, request: str, trusted: Iterable[frozenset[str]]) -> bool:
    """Tell whether a request names a server. A word that several trusted tools use does not count as its name."""
    words = split_words(title)
    if not words or f" {' '.join(words)} " not in request:
        return False
    return sum(tool_words.issuperset(words) for tool_words in trusted) < _COMMON


def _separate_copies(hits: Sequence[Ranked], servers: frozenset[str]) -> tuple[list[Ranked], list[Ranked]]:
    """Separate distinct hits from copies. A trusted original takes the place and score of its best copy."""
    limited = [place for place, item in enumerate(hits) if item.facets.server in servers][:_COMPARED]
    others = [place for place, item in enumerate(hits) if item.facets.server not in servers][:_COMPARED]
    texts = {place: (hits[place].facets.server, _words_of(hits[place].facets)) for place in (*others, *limited)}
    new_place: dict[int, int] = {}
    copies: dict[int, Ranked] = {}
    for place in limited:
        earlier = (other for other in limited if other < place and other not in copies)
        original = next((other for other in (*others, *earlier) if _are_alike(*texts[place], *texts[other])), -1)
        if original >= 0:
            new_place[original] = min(place, new_place.get(original, original))
            copies[place] = _explain(hits[place], f"says what {hits[original].facets.key} says")
    distinct = [place for place in range(len(hits)) if place not in copies]
    distinct.sort(key=lambda place: new_place.get(place, place))
    lifted = [replace(hits[place], score=hits[new_place.get(place, place)].score) for place in distinct]
    return lifted, list(copies.values())


def _share_places(distinct: Sequence[Ranked], copies: Sequence[Ranked], servers: frozenset[str]) -> list[Ranked]:
    """Choose the hits of the first places. All others follow in order, copies last."""
    limited = [item.facets.server in servers for item in distinct]
    places: Counter[str] = Counter()
    first: set[int] = set()
    trusted = max((item.score for item in distinct if item.facets.trusted), default=0.0)
    for most, least in ((MOST, 0.0 if trusted >= FITS else ENOUGH), (PLACES, ENOUGH)):
        for place, item in enumerate(distinct):
            server, is_free = item.facets.server, len(first) < PLACES and place not in first
            is_allowed = not limited[place] or (places.total() < most and places[server] < MOST)
            if is_free and is_allowed and item.score >= least:
                first.add(place)
                places[server] += limited[place]
    reason = f"its server is not trusted, and {MOST} of the first {PLACES} are of such servers"
    rest = [
        _explain(item, reason) if limited[place] and place < max(first, default=0) else item
        for place, item in enumerate(distinct)
        if place not in first
    ]
    return [*(distinct[place] for place in sorted(first)), *rest, *copies]


def _lower_scores(hits: Sequence[Ranked]) -> list[Ranked]:
    """Lower the score of each hit that has a higher one than the hit before it."""
    ordered: list[Ranked] = []
    for item in hits:
        if ordered and item.score > ordered[-1].score:
            item = replace(item, score=ordered[-1].score * _JUST_BELOW)
        ordered.append(item)
    return ordered


def _explain(item: Ranked, reason: str) -> Ranked:
    """Note why a hit changed places, if the parts of its score are explained."""
    parts: Mapping[str, Any] = {**item.parts, "moved": reason} if item.parts else item.parts
    return replace(item, parts=parts)


def _are_alike(server: str, words: frozenset[str], other_server: str, other_words: frozenset[str]) -> bool:
    least, most = sorted((len(words), len(other_words)))
    if server == other_server or least < ALIKE * most:
        return False
    common = len(words & other_words)
    return common >= ALIKE * (least + most - common)


def _words_of(facets: Facets) -> frozenset[str]:
    return _words(facets.name, facets.description[:_COMPARED_CHARACTERS])


@lru_cache(maxsize=8_192)
def _words(name: str, description: str) -> frozenset[str]:
    return frozenset(split_words(f"{name} {description}"))
