"""Which tools go into one turn of a chat: pure, from ranked answers to the list that a model is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolscout.chat import anthropic_tool, model_name
from toolscout.discovery.format import count_tokens
from toolscout.models import Answer, DiscoveredTool, Tool, ToolMatch

EARLIER = 0.6
"""How much a tool that fits an earlier message counts, against one that fits the request; once more for each step."""


def found_tools(answers: Sequence[Answer], *, least_cosine: float | None) -> list[DiscoveredTool]:
    """Merge the answer to a request with those to the earlier messages, best first.

    What the request asks for leads; the subject of the conversation follows it, and stands alone where the request says
    too little ("do that again") to find anything by itself.
    """
    leading = max((match.score or 0.0 for match in answers[0]), default=0.0) if answers else 0.0
    best: dict[str, DiscoveredTool] = {}
    for step, answer in enumerate(answers):
        top = max((match.score or 0.0 for match in answer), default=0.0) or 1.0
        for match in answer:
            weight = EARLIER**step * (leading / top if step and leading else 1.0)
            tool = _found(match, (match.score or 0.0) * weight)
            if least_cosine is not None and tool.similarity < least_cosine:
                continue
            known = best.get(match.tool.key)
            if known is None or (known.score or 0.0) < (tool.score or 0.0):
                best[match.tool.key] = tool
    return sorted(best.values(), key=lambda item: (-(item.score or 0.0), item.tool.key))


def fit_turn(
    found: Sequence[DiscoveredTool], core: Sequence[Tool], *, limit: int, most: int, max_tokens: int | None
) -> tuple[DiscoveredTool, ...]:
    """Merge core tools in behind what was found, none of them twice, within the counts and the budget.

    Core tools are always there: what was found makes room for them, and gives way first where the budget is short.
    """
    found = found[:limit]
    here = {item.tool.key for item in found}
    always = [DiscoveredTool(tool=tool, source="core") for tool in core]
    extra = [item for item in always if item.tool.key not in here][:most]
    chosen = [*found[: most - len(extra)], *extra]
    if max_tokens is None:
        return tuple(chosen)
    cores, left, kept = {tool.key for tool in core}, max_tokens, set()
    for item in sorted(chosen, key=lambda item: item.tool.key not in cores):
        cost = cost_of(item.tool)
        if cost <= left:
            left -= cost
            kept.add(item.tool.key)
    return tuple(item for item in chosen if item.tool.key in kept)


def cost_of(tool: Tool) -> int:
    """Count the tokens of a definition, wrapped as the wordier of the two APIs has it: a budget holds for both."""
    return count_tokens([{"type": "function", "function": anthropic_tool(model_name(tool.key), tool)}])


def _found(match: ToolMatch, score: float) -> DiscoveredTool:
    parts: Mapping[str, object] = match.explain or {}
    cosine = parts.get("cosine", 0.0)
    return DiscoveredTool(
        tool=match.tool, similarity=float(cosine) if isinstance(cosine, (int, float)) else 0.0, score=round(score, 4)
    )
