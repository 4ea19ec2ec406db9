"""The rows of the highest scores. Equal scores are taken in row order, which is by key, so results repeat exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from toolscout.models import FloatArray, IntArray

_NOISE = 1e-6
"""How far apart the scores of equal vectors may lie: a matrix product sums the rows of its last block differently."""


def top_k(scores: FloatArray, limit: int) -> IntArray:
    """Return the rows of the `limit` highest scores, unordered. If rows tie for the last place, the first ones win."""
    if len(scores) <= limit:
        return np.arange(len(scores), dtype=np.int64)
    last = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    near = np.flatnonzero(scores >= last - _NOISE)
    if len(near) == limit:
        return near
    above = scores[near] > last + _NOISE
    winners, ties = near[above], near[~above]
    return np.concatenate([winners, ties[: limit - len(winners)]])
