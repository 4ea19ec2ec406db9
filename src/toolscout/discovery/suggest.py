"""Did you mean: the nearest of the names that the caller may see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolscout.errors import ToolNotFoundError
from toolscout.models import Facets, Tool
from toolscout.tool_keys import split_key

_CUTOFF = 60.0


def did_you_mean(given: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return the names most like the given one, best first, ties by name; none when nothing is like it."""
    from rapidfuzz import fuzz, process

    wanted = given.casefold()
    found = process.extract(
        wanted, {name: name.casefold() for name in known}, scorer=fuzz.WRatio, score_cutoff=_CUTOFF, limit=None
    )
    ranked = sorted(found, key=lambda item: (-item[1], item[2]))
    return tuple(name for _, _, name in ranked[:limit])


def not_found(key: str, visible: Sequence[Facets | Tool]) -> ToolNotFoundError:
    """Build the error for a key that names nothing the caller may see, with the same names and the nearest keys."""
    name = split_key(key)[1].casefold()
    same_name = [item.key for item in visible if name in (item.name.casefold(), item.key.casefold())]
    near = did_you_mean(key, (item.key for item in visible))
    suggestions = tuple(dict.fromkeys([*same_name, *near]))[:3]
    return ToolNotFoundError(
        f"no tool has the key {key!r}", hint="search for it by what it should do", suggestions=suggestions
    )


def nothing_affordable(matched: int) -> tuple[str, ...]:
    """Say that the budget, and not the catalogue, is why nothing is shown."""
    return (f"{matched:,} tools match, but not one fits in so few tokens. Allow 100 or more.",)


def nothing_fits(query: str, categories: Sequence[str]) -> tuple[str, ...]:
    """Say what to try when no tool fits: never the least wrong tool dressed up as a match."""
    tips = [f"No tool fits {query[:80]!r}. Say the need in other or more general words."]
    if categories:
        shown = ", ".join(categories[:12]) + (", ..." if len(categories) > 12 else "")
        tips.append(f"There are tools for: {shown}.")
    return tuple(tips)
