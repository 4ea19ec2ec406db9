"""Suggestions in errors: the names that are most like a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolscout.errors import ToolNotFoundError
from toolscout.models import Facets, Tool
from toolscout.tool_keys import split_key

_CUTOFF = 60.0


def did_you_mean(name: str, candidates: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return the candidates most like a name, best first, ties by name. It is empty if none is alike.

    Pass only names that the caller may see.
    """
    from rapidfuzz import fuzz, process

    matches = process.extract(
        name.casefold(),
        {candidate: candidate.casefold() for candidate in candidates},
        scorer=fuzz.WRatio,
        score_cutoff=_CUTOFF,
        limit=None,
    )
    best = sorted(matches, key=lambda match: (-match[1], match[2]))
    return tuple(candidate for _, _, candidate in best[:limit])


def tool_not_found(key: str, visible: Sequence[Facets | Tool]) -> ToolNotFoundError:
    """Build the error for an unknown key. It suggests visible tools of the same name, then the nearest keys."""
    name = split_key(key)[1].casefold()
    same_name = [item.key for item in visible if name in (item.name.casefold(), item.key.casefold())]
    nearest = did_you_mean(key, (item.key for item in visible))
    suggestions = tuple(dict.fromkeys([*same_name, *nearest]))[:3]
    return ToolNotFoundError(
        f"no tool has the key {key!r}", hint="search for it by what it should do", suggestions=suggestions
    )
