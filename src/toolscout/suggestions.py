"""Suggestions in errors: the names that are most like a name that does not exist."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from toolscout.errors import ToolNotFoundError
from toolscout.models import Facets, Tool
from toolscout.tool_keys import split_key

_CUTOFF = 60.0
_CLOSELY_COMPARED = 2_000
"""Of more names than this, only those that differ in the fewest letters are compared closely, which takes longer."""


def did_you_mean(name: str, candidates: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return the candidates most like a name, best first, ties by name. It is empty if none is alike.

    Pass only names that the caller may see.
    """
    from rapidfuzz import fuzz, process

    names = list(candidates)
    if len(names) > _CLOSELY_COMPARED:
        names = _with_fewest_edits(name, names)
    matches = process.extract(
        name.casefold(),
        {candidate: candidate.casefold() for candidate in names},
        scorer=fuzz.WRatio,
        score_cutoff=_CUTOFF,
        limit=None,
    )
    best = sorted(matches, key=lambda match: (-match[1], match[2]))
    return tuple(candidate for _, _, candidate in best[:limit])


async def tool_not_found(key: str, visible: Sequence[Facets | Tool]) -> ToolNotFoundError:
    """Build the error for an unknown key. It suggests visible tools of the same name, then the nearest keys."""
    if len(visible) > _CLOSELY_COMPARED:
        return await asyncio.to_thread(_tool_not_found, key, visible)
    return _tool_not_found(key, visible)


def _tool_not_found(key: str, visible: Sequence[Facets | Tool]) -> ToolNotFoundError:
    name = split_key(key)[1].casefold()
    same_name = [item.key for item in visible if name in (item.name.casefold(), item.key.casefold())]
    nearest = did_you_mean(key, (item.key for item in visible))
    suggestions = tuple(dict.fromkeys([*same_name, *nearest]))[:3]
    return ToolNotFoundError(
        f"no tool has the key {key!r}", hint="search for it by what it should do", suggestions=suggestions
    )


def _with_fewest_edits(name: str, candidates: Sequence[str]) -> list[str]:
    """Return the candidates that are nearest to a name letter by letter, ties in the order of names."""
    import numpy as np
    from rapidfuzz import fuzz, process

    ordered = sorted(candidates)
    scores = process.cdist([name.casefold()], [item.casefold() for item in ordered], scorer=fuzz.ratio)[0]
    return [ordered[place] for place in np.argsort(-scores, kind="stable")[:_CLOSELY_COMPARED]]
