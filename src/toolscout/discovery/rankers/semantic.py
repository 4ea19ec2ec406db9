"""`semantic`: the cosine, clamped to 0..1, plus 0.2 for each matching tag, clamped to 1. Tags filter first."""

from __future__ import annotations

from collections.abc import Sequence

from toolscout.models import Candidates, Ranked

TAG_BOOST = 0.2


def rank_semantic(candidates: Candidates, tags: Sequence[str]) -> list[Ranked]:
    """Score every candidate by the whole query's cosine and its matching tags."""
    folded_tags = {tag.casefold() for tag in tags}
    ranked = []
    for facets, raw in zip(candidates.facets, candidates.cosine[0].tolist(), strict=True):
        cosine = min(max(raw, 0.0), 1.0)
        matched = tuple(tag for tag in facets.tags if tag.casefold() in folded_tags)
        score = min(cosine + TAG_BOOST * len(matched), 1.0)
        ranked.append(
            Ranked(facets=facets, score=score, matched_tags=matched, parts={"cosine": raw, "tags": len(matched)})
        )
    return ranked
