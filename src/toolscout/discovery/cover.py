"""Requests with several needs: no need takes all the places, and the tools of one server go together.

Two things are known of such requests beyond each tool's own score. A tool counts a little less for every better hit
that serves the same need, and a little more the better the best hit of its server is: who needs two things often needs
both from one place. The hits change places by that; the scores stay with the places, so that they mean what they meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING

import numpy as np

from toolscout.models import LOCAL, Candidates, Intent, Ranked, Ranking

if TYPE_CHECKING:
    from toolscout.models import FloatArray

REPEATED = 0.64
"""What a hit loses, in log odds, for every hit before it that serves the same need."""
SAME_SERVER = 0.2
"""How much of the log odds between the best hit and the best of a tool's own server the tool loses."""
DEPTH = 40
"""How many of the best hits may change places."""


def has_needs(intents: Sequence[Intent]) -> bool:
    """Tell whether a request was cut into several needs; one that was only translated was not."""
    return len(intents) > 2 and intents[0].text != intents[1].text


def cover(ranking: Ranking, intents: Sequence[Intent], candidates: Candidates) -> Ranking:
    """Let the hits change places so that the first ones cover the needs of the request."""
    hits = list(ranking.best[:DEPTH])
    if not has_needs(intents) or len(hits) < 2:
        return ranking
    worth = _worth(hits)
    waiting: dict[int, list[int]] = {}
    for place, need in enumerate(_needs(hits, intents, candidates)):
        waiting.setdefault(need, []).append(place)
    for places in waiting.values():
        places.sort(key=lambda place: (-worth[place], place))
    served = dict.fromkeys(waiting, 0)
    order: list[int] = []
    while len(order) < len(hits):
        left = [need for need, places in waiting.items() if served[need] < len(places)]
        heads = {need: waiting[need][served[need]] for need in left}
        best = max(left, key=lambda need: (worth[heads[need]] - REPEATED * served[need], -heads[need]))
        served[best] += 1
        order.append(heads[best])
    moved = [_at(hits[place], hits[now].score, now != place) for now, place in enumerate(order)]
    return replace(ranking, best=[*moved, *ranking.best[DEPTH:]])


def _needs(hits: Sequence[Ranked], intents: Sequence[Intent], candidates: Candidates) -> list[int]:
    """Return which need each hit serves best: by cosine, or by words where there are no vectors."""
    row_of = {item.key: row for row, item in enumerate(candidates.facets)}
    rows = [row_of[item.facets.key] for item in hits]
    if candidates.with_vectors:
        fit: FloatArray = candidates.cosine[1:]
    else:
        asked = [[term in intent.terms for term in candidates.terms] for intent in intents[1:]]
        fit = np.array(asked, dtype=np.float32) @ candidates.impact
    share = fit / np.maximum(fit.max(axis=1, keepdims=True), 0.1)
    found: list[int] = share[:, rows].argmax(axis=0).tolist()
    return found


def _worth(hits: Sequence[Ranked]) -> list[float]:
    """Return log odds, less what a server's best hit is behind the best of all."""
    odds = [_log_odds(item.score) for item in hits]
    best: dict[str, float] = {}
    for item, worth in zip(hits, odds, strict=True):
        best[item.facets.server] = max(worth, best.get(item.facets.server, worth))
    top = max(odds)
    return [
        worth if item.facets.server == LOCAL else worth + SAME_SERVER * (best[item.facets.server] - top)
        for item, worth in zip(hits, odds, strict=True)
    ]


def _log_odds(score: float) -> float:
    score = min(max(score, 1e-9), 1 - 1e-9)
    return log(score / (1 - score))


def _at(item: Ranked, score: float, changed: bool) -> Ranked:
    if not changed:
        return item
    parts = {**item.parts, "moved": "for the other needs of the request"} if item.parts else item.parts
    return replace(item, score=score, parts=parts)
