"""What goes with a tool: explicitly related, then same category, then shared tags, then similar by meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolscout.models import Facets, Ranked

EXPLICIT, CATEGORY, TAGS, SIMILAR = 4, 3, 2, 1
_SAYS_NOTHING = "general"


def rank_related(tool: Facets, others: Sequence[Facets], similarity: Mapping[str, float]) -> list[Ranked]:
    """Name the strongest relation of each other tool; within one relation the more similar comes first, ties by key."""
    tags = {tag.casefold() for tag in tool.tags}
    found = []
    for other in others:
        if other.key == tool.key:
            continue
        near = similarity.get(other.key, 0.0)
        shared = tuple(tag for tag in other.tags if tag.casefold() in tags)
        strength, relation = _relation(tool, other, shared, near)
        if strength:
            found.append((strength, Ranked(facets=other, score=near, matched_tags=shared, relationship=relation)))
    found.sort(key=lambda item: (-item[0], -item[1].score, -len(item[1].matched_tags), item[1].facets.key))
    return [item for _, item in found]


def _relation(tool: Facets, other: Facets, shared: Sequence[str], near: float) -> tuple[int, str]:
    if _names(tool, other) or _names(other, tool):
        return EXPLICIT, "explicitly_related"
    if tool.category == other.category and tool.category not in ("", _SAYS_NOTHING):
        return CATEGORY, "same_category"
    if shared:
        return TAGS, "shared_tags:" + ",".join(sorted(shared))
    return (SIMILAR, "similar") if near > 0 else (0, "")


def _names(tool: Facets, other: Facets) -> bool:
    """Tell whether a tool names the other: by its key, or by its name on the same server."""
    return other.key in tool.related or (other.server == tool.server and other.name in tool.related)
