"""Calibration: how likely a hit is right, as a score from 0 to 1 and as a word.

The likelihood that the first hit is right is a logistic curve over a few facts that `explain` shows. A later hit is
less likely the further its strength is behind, so scores have the order of the strengths. `training/calibrate.py` fits
the numbers, on requests with and without a tool that answers them, and measures them on sets that it left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toolscout.discovery.fusion import Doubles, Evidence, Fusion, rarity
from toolscout.models import Fit

FIRST: Mapping[str, float] = {
    "intercept": -3.945,
    "strength": 5.623,
    "lead": 12.152,
    "cover": -0.181,
    "terms": -0.171,
    "server": -0.016,
    "elsewhere": -0.506,
    "contradicts": -1.081,
}
"""Whether the first hit is right: weights of the facts, with vectors."""
FIRST_BY_WORDS: Mapping[str, float] = {
    "intercept": -3.49,
    "strength": 12.42,
    "cover": 0.607,
    "contradicts": -1.563,
}
"""The same without vectors, or if the best hit has none yet."""
LATER, DECAY = 0.9, 4.0
"""A later hit is at most this share as likely as the first, and less by this power of its distance in strength."""
LATER_BY_WORDS, DECAY_BY_WORDS = 0.8, 7.0
"""The same without vectors."""
STRONG, LIKELY = 0.83, 0.27
"""The least scores of a strong and of a likely hit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The strengths of the candidates as likelihoods."""

    first: float
    """How likely the first hit is right, 0 to 1."""
    score: Doubles
    """For each candidate, how likely it is right, 0 to 1."""
    facts: Mapping[str, float]
    """The facts that `first` was computed from."""


def facts_of(evidence: Evidence, fusion: Fusion) -> dict[str, float]:
    """Return the facts about the request and its best hit. Only visible tools count."""
    weight = rarity(evidence.frequency, evidence.visible) * evidence.intent_terms[0]
    total = max(float(weight.sum()), 1e-9)
    known = float(weight[evidence.frequency > 0].sum()) / total
    best, terms = int(fusion.strength.argmax()), float(evidence.intent_terms[0].sum())
    return {
        "strength": float(fusion.strength[best]),
        "lead": fusion.lead,
        "cosine": 0.0 if evidence.cosine is None else float(evidence.cosine.max(axis=1).mean()),
        "cover": float(fusion.cover[best]),
        "known": float(np.log1p(known * terms)),
        "terms": float(np.log1p(terms)),
        "server": float(fusion.server[best]),
        "elsewhere": float(evidence.server[0].any() and not evidence.server[:, best].any()),
        "contradicts": float(fusion.action[best] < 0),
    }


def calibrate(evidence: Evidence, fusion: Fusion) -> Calibration:
    """Give every candidate its score."""
    if not len(fusion.strength):
        return Calibration(first=0.0, score=fusion.strength, facts={})
    facts, best = facts_of(evidence, fusion), int(fusion.strength.argmax())
    by_words = evidence.cosine is None or not evidence.cosine[:, best].any()
    first = _curve(_sum(FIRST_BY_WORDS if by_words else FIRST, facts))
    later, decay = (LATER_BY_WORDS, DECAY_BY_WORDS) if by_words else (LATER, DECAY)
    score: Doubles = first * later * np.exp(decay * (fusion.strength - fusion.strength[best]))
    score[best] = first
    return Calibration(first=first, score=score, facts=facts)


def fit_of(score: float) -> Fit:
    """Return the word for a score."""
    return "strong" if score >= STRONG else "likely" if score >= LIKELY else "weak"


def _sum(weights: Mapping[str, float], facts: Mapping[str, float]) -> float:
    return weights["intercept"] + sum(weights[name] * value for name, value in facts.items() if name in weights)


def _curve(logit: float) -> float:
    return float(1.0 / (1.0 + np.exp(-min(max(logit, -30.0), 30.0))))
