"""`hybrid`: every signal there is, fused and calibrated; a score is about how likely the tool is what was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from toolscout.discovery.calibrate import Calibrated, calibrate
from toolscout.discovery.fuse import Evidence, Fused, fuse
from toolscout.discovery.rankers.plain import folded, spaced
from toolscout.models import FIELDS, LOCAL, Candidates, Intent, Query, Ranked, Ranking
from toolscout.text import actions, names_server, wanted_action

FLOOR = 0.0005
"""Where something fits, what is below this is left out: it costs hardly a right hit, and nobody wants to read it."""

_LONGEST_NAME = 8
_LABELS = frozenset({"mcp", "server", "tool"})


def rank_hybrid(query: Query, intents: Sequence[Intent], candidates: Candidates) -> Ranking:
    """Score the candidates, best first; nothing at all when it is not likely that anything fits."""
    evidence = _evidence(query, intents, candidates)
    fused = fuse(evidence)
    found = calibrate(evidence, fused)
    least = query.threshold if query.threshold is not None else (FLOOR if found.enough else 2.0)
    order = np.argsort(-fused.strength, kind="stable")  # candidates come in the order of keys, so ties fall by key
    best_ones = [
        Ranked(
            facets=candidates.facets[row],
            score=float(found.score[row]),
            parts=_parts(row, intents, candidates, fused, found) if query.explain else {},
        )
        for row in order[: query.limit].tolist()
        if found.score[row] >= least
    ]
    return Ranking(best=best_ones, matched=int((found.score >= least).sum()))


def _evidence(query: Query, intents: Sequence[Intent], candidates: Candidates) -> Evidence:
    asked = np.array([[term in intent.terms for term in candidates.terms] for intent in intents], dtype=np.bool_)
    return Evidence(
        cosine=candidates.cosine if candidates.with_vectors else None,
        impact=candidates.impact,
        frequency=candidates.frequency,
        visible=candidates.visible,
        asked=asked.reshape(len(intents), len(candidates.terms)),
        actions=np.fromiter((actions(item.name) for item in candidates.facets), np.uint8, len(candidates.facets)),
        wanted=np.array([wanted_action(intent.text) for intent in intents], dtype=np.uint8),
        server=_of_server(intents, candidates),
        exact=_named(query.text.strip(), candidates),
    )


def _of_server(intents: Sequence[Intent], candidates: Candidates) -> npt.NDArray[np.bool_]:
    """Tell which intents name the server of which candidates."""
    titles = ["" if item.server == LOCAL else item.server_title for item in candidates.facets]
    named = np.zeros((len(intents), len(titles)), dtype=np.bool_)
    for place, intent in enumerate(intents):
        asked = frozenset(intent.terms)
        meant = {title for title in set(titles) if names_server(asked, title)}
        if meant:
            named[place] = [title in meant for title in titles]
    return named


def _named(text: str, candidates: Candidates) -> npt.NDArray[np.bool_]:
    """Tell which candidates the request names: letter by letter, or else word by word."""
    if text.count(" ") >= _LONGEST_NAME:
        return np.zeros(len(candidates.facets), dtype=np.bool_)
    whole = folded(text)
    literal = [whole in (folded(item.key), folded(item.name)) for item in candidates.facets]
    if not any(literal):
        words = spaced(text)
        literal = [words == spaced(item.name) for item in candidates.facets]
    if not any(literal):
        words = _without_labels(text)
        literal = [words in _with_server(item.name, item.server_title) for item in candidates.facets]
    return np.array(literal, dtype=np.bool_)


def _without_labels(text: str) -> str:
    """Write a text without spaces, as brands are written with and without, and without what only labels a name."""
    return "".join(word for word in spaced(text).split() if word not in _LABELS)


@lru_cache(maxsize=65_536)
def _with_server(name: str, server: str) -> tuple[str, str, str]:
    """Write a tool's name with its server's, as agents and people do: `server: github tool: create_issue`."""
    server, name = _without_labels(server), _without_labels(name)
    return f"{server}{name}", f"{name}in{server}", f"{name}of{server}"


def _parts(
    row: int, intents: Sequence[Intent], candidates: Candidates, fused: Fused, found: Calibrated
) -> Mapping[str, Any]:
    held = {
        term: [field for bit, field in enumerate(FIELDS) if int(mask) >> bit & 1]
        for term, mask in zip(candidates.terms, candidates.fields[:, row], strict=True)
        if mask
    }
    return {
        "cosine": round(float(fused.cosine[row]), 4),
        "words": round(float(fused.words[row]), 4),
        "cover": round(float(fused.cover[row]), 4),
        "action": round(float(fused.action[row]), 4),
        "server_named": bool(fused.server[row]),
        "strength": round(float(fused.strength[row]), 4),
        "lead": round(fused.lead, 4),
        "fits": round(found.fits, 4),
        # Half a surrogate pair cannot be written as UTF-8, and an answer must be.
        "intent": intents[int(fused.intent[row])].text.encode("utf-8", "replace").decode("utf-8"),
        "matched_words": held,
    }
