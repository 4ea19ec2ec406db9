"""Why a tool is, or is not, among the hits of a request: held back, switched off, denied by a rule, or ranked low."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolscout.models import Caller, Fit, SearchOptions, ToolMatch
from toolscout.policy.rules import Decision

if TYPE_CHECKING:
    from toolscout.scout.facade import Scout

_DEPTH = 200
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What decides whether a caller finds a tool with a request."""

    key: str
    see: Decision
    call: Decision
    rank: int | None
    """Its place among the hits, from 1. None if it is not among the first 200, or may not be seen."""
    score: float | None
    fit: Fit | None
    parts: Mapping[str, Any] | None
    """The parts of its score."""
    reason: str
    """One sentence for a person."""
    before: tuple[str, ...] = ()
    """The keys that rank before it, five at most."""

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON."""
        return {
            "key": self.key,
            "reason": self.reason,
            "see": {"allowed": self.see.allowed, "because": self.see.because},
            "call": {"allowed": self.call.allowed, "because": self.call.because},
            "rank": self.rank,
            "score": self.score,
            "fit": self.fit,
            "parts": dict(self.parts) if self.parts is not None else None,
            "before": list(self.before),
            "suggestions": list(self.see.suggestions),
        }


async def explain_tool(
    scout: Scout,
    query: str,
    key: str,
    caller: Caller,
    *,
    tags: Sequence[str] = (),
    options: SearchOptions | None = None,
) -> Explanation:
    """Explain one tool and one request, with the filters and the ranker that it had.

    It is for operators: it tells of tools that the caller may not see.
    """
    see = await scout.access.explain(caller, key, "see")
    call = await scout.access.explain(caller, key, "call")
    if not see.allowed:
        return Explanation(key=key, see=see, call=call, rank=None, score=None, fit=None, parts=None, reason=see.because)
    given: SearchOptions = {**(options or SearchOptions()), "explain": True, "caller": caller}
    answer = await scout.search_tools(query, tags, _DEPTH, **given)
    place = _place(answer, key)
    if place is None:
        narrowed = _narrowed_by(tags, given)
        ranker = given.get("ranker")
        wide = await scout.search_tools(query, None, _DEPTH, ranker=ranker, caller=caller) if narrowed else ()
        reason = _absent_reason(narrowed, _place(wide, key))
        return Explanation(key=key, see=see, call=call, rank=None, score=None, fit=None, parts=None, reason=reason)
    match = answer[place - 1]
    return Explanation(
        key=key,
        see=see,
        call=call,
        rank=place,
        score=match.score,
        fit=match.fit,
        parts=match.explain,
        reason=_ranked_reason(place, match.fit),
        before=tuple(item.tool.key for item in answer[: min(place - 1, _SHOWN)]),
    )


def _ranked_reason(place: int, fit: Fit | None) -> str:
    called = f", and is called {fit}" if fit else ""
    if place <= _SHOWN:
        return f"it is number {place} of the hits{called}"
    return f"it is number {place}{called}; agents are shown {_SHOWN} hits unless they ask for more"


def _place(answer: Sequence[ToolMatch], key: str) -> int | None:
    return next((number for number, match in enumerate(answer, start=1) if match.tool.key == key), None)


def _narrowed_by(tags: Sequence[str], options: SearchOptions) -> str:
    """Name what a search may have left tools out by, "" if by nothing."""
    filters = bool(tags or options.get("category") or options.get("servers") or options.get("top_k_services"))
    threshold = options.get("threshold") is not None
    return " or ".join(name for name, given in (("the filters", filters), ("the threshold", threshold)) if given)


def _absent_reason(narrowed: str, wide_place: int | None) -> str:
    if wide_place is not None:
        return f"it is left out by {narrowed} of the request; otherwise it is number {wide_place} of the hits"
    return f"it is not among the first {_DEPTH} hits: neither its words nor its meaning are near the request"
