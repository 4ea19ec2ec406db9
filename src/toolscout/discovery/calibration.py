"""Calibration: how likely a hit is right. First whether anything fits at all, then which of the hits it is.

Both are logistic curves over a few facts that `explain` shows. `fits` looks at the request and the best hit: is there a
tool that does what the request asks for? The share of a hit is how likely it is the right one if something fits. It
falls with the distance in strength from the best. The score is the product, so scores have the order of the strengths.
`training/calibrate.py` fits the numbers, and measures them on sets that were omitted from the fitting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toolscout.discovery.fusion import Doubles, Evidence, Fusion, rarity

FITS: Mapping[str, float] = {
    "intercept": -5.769,
    "strength": 5.219,
    "lead": 3.053,
    "cosine": 7.931,
    "known": -1.145,
}
"""Whether something fits: weights of the facts, with vectors."""
FITS_BY_WORDS: Mapping[str, float] = {
    "intercept": -1.803,
    "strength": 13.774,
    "known": -1.341,
}
"""The same without vectors, or if the best hit has none yet."""
SHARE: Mapping[str, float] = {
    "intercept": -3.447,
    "gap": 7.359,
    "strength": 2.843,
    "lead": 11.242,
    "several": 1.012,
}
"""Which hit it is, if something fits."""
SHARE_BY_WORDS: Mapping[str, float] = {
    "intercept": -3.528,
    "gap": 12.499,
    "strength": 9.578,
    "several": 0.672,
}
"""The same without vectors."""
THRESHOLD = 0.09
"""Below this, nothing fits. About one answerable request in fifty is lost, the mean of the sets."""
THRESHOLD_BY_WORDS = 0.1
"""The same without vectors."""
THRESHOLD_STRANGE = 0.2
"""The threshold for a request that shares no word with any visible tool. Nonsense has a nearest vector, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The strengths of the candidates as likelihoods."""

    fits: float
    """How likely the catalogue has a tool for the request, 0 to 1."""
    enough: bool
    """Whether that is likely enough for an answer."""
    score: Doubles
    """For each candidate, how likely it is right, 0 to 1."""
    facts: Mapping[str, float]
    """The facts that `fits` was computed from."""


def facts_of(evidence: Evidence, fusion: Fusion) -> dict[str, float]:
    """Return the facts about the request and its best hit. Only visible tools count."""
    weight = rarity(evidence.frequency, evidence.visible) * evidence.intent_terms[0]
    total = max(float(weight.sum()), 1e-9)
    known = float(weight[evidence.frequency > 0].sum()) / total
    return {
        "strength": float(fusion.strength.max()),
        "lead": fusion.lead,
        "cosine": 0.0 if evidence.cosine is None else float(evidence.cosine.max(axis=1).mean()),
        "known": float(np.log1p(known * evidence.intent_terms[0].sum())),
        "several": float(evidence.several_needs),
    }


def calibrate(evidence: Evidence, fusion: Fusion) -> Calibration:
    """Give every candidate its score, and decide whether anything fits."""
    if not len(fusion.strength):
        return Calibration(fits=0.0, enough=False, score=fusion.strength, facts={})
    facts = facts_of(evidence, fusion)
    by_words = evidence.cosine is None or not evidence.cosine[:, int(fusion.strength.argmax())].any()
    fits = float(_curve(_sum(FITS_BY_WORDS if by_words else FITS, facts)))
    weights = SHARE_BY_WORDS if by_words else SHARE
    gap = fusion.strength - fusion.strength.max()
    share = _curve(_sum(weights, facts) + weights["gap"] * gap)
    least = THRESHOLD_STRANGE if not facts["known"] else THRESHOLD_BY_WORDS if by_words else THRESHOLD
    return Calibration(fits=fits, enough=fits >= least, score=fits * share, facts=facts)


def _sum(weights: Mapping[str, float], facts: Mapping[str, float]) -> float:
    return weights["intercept"] + sum(weights[name] * value for name, value in facts.items() if name in weights)


def _curve(logit: Doubles | float) -> Doubles:
    curve: Doubles = 1.0 / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0)))
    return curve
