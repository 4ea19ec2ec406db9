"""Interim hybrid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolscout.models import Candidates, Intent, Query, Ranked

THRESHOLD = 0.1


def rank_hybrid(query: Query, intents: Sequence[Intent], candidates: Candidates) -> list[Ranked]:
    """Interim."""
    idf = np.log1p((candidates.visible - candidates.frequency + 0.5) / (candidates.frequency + 0.5))
    words = (idf[:, None] * candidates.impact).sum(0)
    words = words / max(float(words.max(initial=0)), 1e-9)
    score = 0.7 * candidates.cosine[0] + 0.3 * words
    return [Ranked(facets=f, score=float(v)) for f, v in zip(candidates.facets, score, strict=True)]
