"""How likely a hit is right: first whether anything fits at all, then which of the hits it is.

Two logistic curves over a few facts that can be read and checked. `fits` looks at the request and the best hit: is
there a tool here that does what is asked? The share of a hit says how likely it is the right one if something fits; it
falls with the distance in strength from the best. The score is the product, so its order is that of the strengths.
`training/calibrate.py` fits the numbers, and measures them on sets that were left out of the fitting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toolscout.discovery.fuse import Doubles, Evidence, Fused, rarity

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
"""The same when there are no vectors, or the best hit has none yet."""
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
"""The same when there are no vectors."""
THRESHOLD = 0.09
"""Below this nothing fits: about one answerable request in fifty is lost, the mean of the sets."""
THRESHOLD_BY_WORDS = 0.1
"""The same when there are no vectors."""
THRESHOLD_STRANGE = 0.2
"""What is asked of a request that has not one word of any visible tool: the nearest vector of nonsense is nonsense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """What the strengths of the candidates mean."""

    fits: float
    """How likely the catalogue holds a tool for the request, 0 to 1."""
    enough: bool
    """Whether that is enough for an answer."""
    score: Doubles
    """For each candidate, how likely it is right, 0 to 1."""
    facts: Mapping[str, float]
    """What `fits` was made of."""


def facts_of(evidence: Evidence, fused: Fused) -> dict[str, float]:
    """Return what is known of the request and its best hit; only visible tools count."""
    weight = rarity(evidence.frequency, evidence.visible) * evidence.asked[0]
    total = max(float(weight.sum()), 1e-9)
    known = float(weight[evidence.frequency > 0].sum()) / total
    return {
        "strength": float(fused.strength.max()),
        "lead": fused.lead,
        "cosine": 0.0 if evidence.cosine is None else float(evidence.cosine.max(axis=1).mean()),
        "known": float(np.log1p(known * evidence.asked[0].sum())),
        "several": float(evidence.asked.shape[0] > 1 and bool((evidence.asked[0] != evidence.asked[1]).any())),
    }


def calibrate(evidence: Evidence, fused: Fused) -> Calibrated:
    """Give every candidate its score, and say whether anything fits."""
    if not len(fused.strength):
        return Calibrated(fits=0.0, enough=False, score=fused.strength, facts={})
    facts = facts_of(evidence, fused)
    by_words = evidence.cosine is None or not evidence.cosine[:, int(fused.strength.argmax())].any()
    fits = float(_curve(_sum(FITS_BY_WORDS if by_words else FITS, facts)))
    weights = SHARE_BY_WORDS if by_words else SHARE
    gap = fused.strength - fused.strength.max()
    share = _curve(_sum(weights, facts) + weights["gap"] * gap)
    least = THRESHOLD_STRANGE if not facts["known"] else THRESHOLD_BY_WORDS if by_words else THRESHOLD
    return Calibrated(fits=fits, enough=fits >= least, score=fits * share, facts=facts)


def _sum(weights: Mapping[str, float], facts: Mapping[str, float]) -> float:
    return weights["intercept"] + sum(weights[name] * value for name, value in facts.items() if name in weights)


def _curve(logit: Doubles | float) -> Doubles:
    curve: Doubles = 1.0 / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0)))
    return curve
