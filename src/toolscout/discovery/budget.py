"""A token budget: the best hits in the detail asked for, less for the rest, never over the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolscout.discovery.format import count_tokens, format_match
from toolscout.models import Detail, ToolMatch

_LEVELS: tuple[Detail, ...] = ("minimal", "brief", "full")
_LIST_TOKENS = 1


def fit_budget(matches: Sequence[ToolMatch], detail: Detail, max_tokens: int | None) -> tuple[ToolMatch, ...]:
    """Give each hit the most detail that fits, best first; hits that do not fit even as minimal are left out."""
    if max_tokens is None:
        return tuple(replace(match, detail=detail) for match in matches)
    levels = _LEVELS[: _LEVELS.index(detail) + 1]
    left = max_tokens - _LIST_TOKENS
    spent: list[int] = []
    for match in matches:
        cost = _cost(match, "minimal")
        if cost > left:
            break
        left -= cost
        spent.append(cost)
    chosen: list[Detail] = ["minimal"] * len(spent)
    for level in levels[1:]:
        for place, match in enumerate(matches[: len(spent)]):
            cost = _cost(match, level)
            if cost - spent[place] > left:
                break
            left -= cost - spent[place]
            spent[place], chosen[place] = cost, level
    return tuple(replace(match, detail=level) for match, level in zip(matches, chosen, strict=False))


def _cost(match: ToolMatch, level: Detail) -> int:
    return count_tokens(format_match(match, level)) + 1
