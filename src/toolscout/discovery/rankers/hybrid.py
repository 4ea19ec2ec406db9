"""`hybrid`: all signals, fused and calibrated. A score is about how likely the tool is what the request asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from toolscout.discovery.calibration import Calibration, calibrate
from toolscout.discovery.fusion import Evidence, Fusion, fuse
from toolscout.discovery.request import UnderstoodRequest
from toolscout.models import FIELDS, LOCAL, Candidates, Query, Ranked, Ranking
from toolscout.text import NAME_LABELS, fold, spell_out
from toolscout.verbs import actions, other_action, wanted_action

FLOOR = 0.0005
"""Hits below this score are omitted. Hardly a right hit is lost, and the answer is shorter."""
_LONGEST_NAME = 8
"""A request with more words is not compared with names."""


def rank_hybrid(query: Query, request: UnderstoodRequest, candidates: Candidates) -> Ranking:
    """Score the candidates, best first."""
    evidence = _evidence(query, request, candidates)
    fusion = fuse(evidence)
    calibration = calibrate(evidence, fusion)
    least = FLOOR if query.threshold is None else query.threshold
    order = np.argsort(-fusion.strength, kind="stable")  # candidates are in the order of keys, so ties go by key
    best = [
        Ranked(
            facets=candidates.facets[row],
            score=float(calibration.score[row]),
            parts=_parts(row, request, candidates, fusion, calibration) if query.explain else {},
        )
        for row in order[: query.limit].tolist()
        if calibration.score[row] >= least
    ]
    return Ranking(best=best, matched=int((calibration.score >= least).sum()))


def _evidence(query: Query, request: UnderstoodRequest, candidates: Candidates) -> Evidence:
    intents, facets = request.intents, candidates.facets
    verbs = [wanted_action(intent.text) for intent in intents]
    terms = np.array([[term in intent.terms for term in candidates.terms] for intent in intents], dtype=np.bool_)
    return Evidence(
        cosine=candidates.cosine if candidates.with_vectors else None,
        impact=candidates.impact,
        frequency=candidates.frequency,
        visible=candidates.visible,
        intent_terms=terms.reshape(len(intents), len(candidates.terms)),
        intent_action=np.array(verbs, dtype=np.int64),
        other_action=np.array([other_action(action) for action in verbs], dtype=np.int64),
        several_needs=bool(request.clauses),
        actions=np.fromiter((actions(item.name) for item in facets), np.int64, len(facets)),
        server=_names_server(request, candidates),
        exact=_is_name(request.text.strip(), candidates),
        tags=_matched_tags(query.filter.tags, candidates) if query.filter.tags else None,
    )


def _matched_tags(tags: Sequence[str], candidates: Candidates) -> npt.NDArray[np.int64]:
    """Count the tags of the filter that each candidate has."""
    folded = {tag.casefold() for tag in tags}
    counts = (sum(tag.casefold() in folded for tag in item.tags) for item in candidates.facets)
    return np.fromiter(counts, np.int64, len(candidates.facets))


def _names_server(request: UnderstoodRequest, candidates: Candidates) -> npt.NDArray[np.bool_]:
    """Tell which intents name the server of which candidates."""
    flags = np.zeros((len(request.intents), len(candidates.facets)), dtype=np.bool_)
    for place, intent in enumerate(request.intents):
        if titles := request.named_servers.get(intent.text):
            flags[place] = [item.server != LOCAL and item.server_title in titles for item in candidates.facets]
    return flags


def _is_name(text: str, candidates: Candidates) -> npt.NDArray[np.bool_]:
    """Tell which candidates have the request as their name: letter by letter, or else word by word."""
    if text.count(" ") >= _LONGEST_NAME:
        return np.zeros(len(candidates.facets), dtype=np.bool_)
    folded = fold(text)
    flags = [folded in (fold(item.key), fold(item.name)) for item in candidates.facets]
    if not any(flags):
        words = spell_out(text)
        flags = [words == spell_out(item.name) for item in candidates.facets]
    if not any(flags):
        joined = _without_labels(text)
        flags = [joined in _with_server(item.name, item.server_title) for item in candidates.facets]
    return np.array(flags, dtype=np.bool_)


def _without_labels(text: str) -> str:
    """Return a text without labels and without spaces, since brands are written with and without spaces."""
    return "".join(word for word in spell_out(text).split() if word not in NAME_LABELS)


@lru_cache(maxsize=65_536)
def _with_server(name: str, server: str) -> tuple[str, str, str]:
    """Return a tool's name together with its server's, as people write it: `server: github tool: create_issue`."""
    server, name = _without_labels(server), _without_labels(name)
    return f"{server}{name}", f"{name}in{server}", f"{name}of{server}"


def _parts(
    row: int, request: UnderstoodRequest, candidates: Candidates, fusion: Fusion, calibration: Calibration
) -> Mapping[str, Any]:
    matched_words = {
        term: [field for bit, field in enumerate(FIELDS) if int(mask) >> bit & 1]
        for term, mask in zip(candidates.terms, candidates.fields[:, row], strict=True)
        if mask
    }
    return {
        "cosine": round(float(fusion.cosine[row]), 4),
        "words": round(float(fusion.words[row]), 4),
        "cover": round(float(fusion.cover[row]), 4),
        "action": round(float(fusion.action[row]), 4),
        "server_named": bool(fusion.server[row]),
        "strength": round(float(fusion.strength[row]), 4),
        "lead": round(fusion.lead, 4),
        "first": round(calibration.first, 4),
        "intent": request.intents[int(fusion.intent[row])].text.encode("utf-8", "replace").decode("utf-8"),
        "matched_words": matched_words,
    }
