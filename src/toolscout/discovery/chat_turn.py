"""The tools for one chat turn: search for the request and the last messages, add core tools, fit the budget."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolscout.chat import definition_tokens, model_names
from toolscout.discovery.checks import check_count
from toolscout.discovery.search import Search
from toolscout.errors import EmptyQueryError, InvalidValueError, UsageError
from toolscout.models import (
    Answer,
    Caller,
    ChatSelection,
    ChatTurn,
    DiscoveredTool,
    Facets,
    Filter,
    Overview,
    Query,
    Tool,
    ToolMatch,
)
from toolscout.telemetry import described, emit, span

EARLIER = 0.6
"""How much a tool that fits an earlier message counts, against one that fits the request; once more for each step."""
FEW = 3
"""How many tools a turn gets if none of them is likely to fit."""
RECENT = 2
"""How many of the user's earlier messages are searched for."""
_LONGEST_MESSAGE = 1_000
_HITS_BEFORE_THRESHOLD = 50
"""How many hits are fetched when a cosine threshold decides which of them stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatToolSelector:
    """Selects the tools of chat turns: a search, the keys of core tools, and the servers that are down."""

    search: Search
    core: tuple[str, ...]
    down: Mapping[str, str]

    async def select(self, turn: ChatTurn, caller: Caller) -> ChatSelection:
        """Select the tools of a turn. In the modes `off` and `shadow` the turn gets all tools."""
        with span("choose_tools"):
            return await self._select(turn, caller)

    async def _select(self, turn: ChatTurn, caller: Caller) -> ChatSelection:
        started = time.perf_counter()
        turn, mode = self._checked(turn), self.search.settings.discovery
        overview = await self.search.store.overview(caller)
        visible = [] if turn.servers == () else await self.search.store.facets(caller, _filter_of(turn))
        tools, degraded = ((), None) if mode == "off" else await self._choose(turn, caller, visible, mode)
        took_ms = round((time.perf_counter() - started) * 1_000, 3)
        if mode != "off":
            self._log(turn, caller, tools, overview, took_ms, degraded)
        if mode != "on":
            all_tools = await self._read(caller, [item.key for item in visible])
            tools = tuple(DiscoveredTool(tool=tool, source="all") for tool in all_tools)
        tokens = sum(definition_tokens(item.tool) for item in tools)
        return ChatSelection(
            tools=tools,
            total_searched=len(visible),
            search_duration_ms=took_ms,
            embedding_generated=mode != "off" and degraded is None and bool(visible),
            tokens=tokens,
            tokens_saved=max(overview.tokens - tokens, 0) if mode == "on" else 0,
            degraded=degraded,
        )

    async def find_tool(self, name: str, caller: Caller) -> Tool | None:
        """Find a visible tool by the name that a model was shown, also in an earlier turn."""
        visible = await self.search.store.facets(caller, Filter())
        key = model_names(item.key for item in visible).get(name, name)
        return (await self.search.store.tools(caller, [key])).get(key)

    def _checked(self, turn: ChatTurn) -> ChatTurn:
        """Refuse invalid values. A limit above the most tools of a turn is lowered to it."""
        check_count("limit", turn.limit, self.search.settings.max_limit)
        if turn.max_tokens is not None:
            check_count("max_tokens", turn.max_tokens)
        threshold: Any = turn.similarity_threshold
        if threshold is not None and not (isinstance(threshold, (int, float)) and -1 <= threshold <= 1):
            raise InvalidValueError(
                f"similarity_threshold is a cosine from -1 to 1, not {threshold!r}",
                hint="omit it to get the best tools",
            )
        return replace(turn, limit=min(turn.limit, self.search.settings.turn_tools))

    async def _choose(
        self, turn: ChatTurn, caller: Caller, visible: Sequence[Facets], mode: str
    ) -> tuple[tuple[DiscoveredTool, ...], str | None]:
        """Return the tools of the turn, and why they are not as good as they could be, if so.

        An empty request is an error of the app in the mode `on`. In the mode `shadow` it must not disturb the chat.
        """
        core = await self._read(caller, self.core) if turn.include_core_tools else []
        try:
            tools, degraded = await self._search(turn, caller) if visible else ([], None)
        except UsageError as error:
            if mode == "on":
                raise
            tools, degraded = [], error.message
        except Exception as error:  # noqa: BLE001 - the chat goes on with core tools and the first by key, marked
            keys = [tool.key for tool in core] + [item.key for item in visible[: turn.limit]]
            first = await self._read(caller, list(dict.fromkeys(keys))[: turn.limit])
            tools = [DiscoveredTool(tool=tool, source="fallback") for tool in first]
            degraded = f"searching failed ({type(error).__name__}): core tools and the first by key instead"
        most = self.search.settings.turn_tools
        return fit_turn(tools, core, limit=turn.limit, most=most, max_tokens=turn.max_tokens), degraded

    async def _search(self, turn: ChatTurn, caller: Caller) -> tuple[list[DiscoveredTool], str | None]:
        """Search for the turn. Without vectors there is no cosine, so a threshold on it is not applied."""
        answers = await self.search.answer(self._queries(turn), caller, self.down)
        degraded = next((answer.metadata.degraded for answer in answers if answer.metadata.degraded), None)
        if degraded and turn.similarity_threshold is not None:
            return await self._search(replace(turn, similarity_threshold=None), caller)
        return merge_answers(answers, least_cosine=turn.similarity_threshold), degraded

    def _queries(self, turn: ChatTurn) -> list[Query]:
        """Return queries for the request and the last messages."""
        texts = [*([turn.query] if turn.query.strip() else []), *recent_texts(turn.messages, turn.query)]
        if not texts:
            raise EmptyQueryError(
                "neither the query nor the messages say anything", hint="pass what the user wrote in this turn"
            )
        longest = self.search.settings.max_query_chars
        by_cosine = turn.similarity_threshold is not None
        return [
            Query(
                text=text[-longest:],
                filter=_filter_of(turn),
                limit=max(turn.limit, _HITS_BEFORE_THRESHOLD) if by_cosine else turn.limit,
                threshold=0.0 if by_cosine else None,
                explain=True,
                detail="minimal",
            )
            for text in texts[: self.search.settings.max_queries]
        ]

    async def _read(self, caller: Caller, keys: Sequence[str]) -> list[Tool]:
        tools = await self.search.store.tools(caller, keys)
        return [tools[key] for key in keys if key in tools]

    def _log(
        self,
        turn: ChatTurn,
        caller: Caller,
        tools: Sequence[DiscoveredTool],
        overview: Overview,
        took_ms: float,
        degraded: str | None,
    ) -> None:
        emit(
            "tools.selected",
            mode=self.search.settings.discovery,
            tenant=caller.tenant,
            user=caller.user,
            query=described(turn.query, shown=self.search.settings.log_queries),
            tools=[{"key": item.tool.key, "source": item.source, "similarity": item.similarity} for item in tools],
            total=overview.total,
            generation=overview.generation,
            took_ms=took_ms,
            degraded=degraded,
        )


def merge_answers(answers: Sequence[Answer], *, least_cosine: float | None) -> list[DiscoveredTool]:
    """Merge the answer to a request with those to the earlier messages, best first.

    The tools for the request come first, those for the earlier messages follow. Where the request alone finds nothing
    that is likely to fit ("do that again"), the earlier messages decide.
    """
    is_sure = any(match.fit != "weak" for match in answers[0]) if answers else False
    leading = max((match.score or 0.0 for match in answers[0]), default=0.0) if is_sure else 0.0
    best: dict[str, DiscoveredTool] = {}
    for step, answer in enumerate(answers):
        top = max((match.score or 0.0 for match in answer), default=0.0) or 1.0
        for match in answer:
            weight = EARLIER**step * (leading / top if step and leading else 1.0)
            tool = _discovered(match, (match.score or 0.0) * weight)
            if least_cosine is not None and tool.similarity < least_cosine:
                continue
            other = best.get(match.tool.key)
            if other is None or (other.score or 0.0) < (tool.score or 0.0):
                best[match.tool.key] = tool
    tools = sorted(best.values(), key=lambda item: (-(item.score or 0.0), item.tool.key))
    is_enough = least_cosine is not None or any(item.fit != "weak" for item in tools)
    return tools if is_enough else tools[:FEW]


def fit_turn(
    matches: Sequence[DiscoveredTool], core: Sequence[Tool], *, limit: int, most: int, max_tokens: int | None
) -> tuple[DiscoveredTool, ...]:
    """Add the core tools behind the matches, none of them twice, within the counts and the token budget.

    Core tools have precedence: matches make room for them, and are dropped first where the budget is short.
    """
    matches = matches[:limit]
    matched_keys = {item.tool.key for item in matches}
    core_tools = [DiscoveredTool(tool=tool, source="core") for tool in core]
    extra = [item for item in core_tools if item.tool.key not in matched_keys][:most]
    chosen = [*matches[: most - len(extra)], *extra]
    if max_tokens is None:
        return tuple(chosen)
    core_keys, budget, affordable = {tool.key for tool in core}, max_tokens, set()
    for item in sorted(chosen, key=lambda item: item.tool.key not in core_keys):
        cost = definition_tokens(item.tool)
        if cost <= budget:
            budget -= cost
            affordable.add(item.tool.key)
    return tuple(item for item in chosen if item.tool.key in affordable)


def recent_texts(messages: Iterable[Any], query: str) -> list[str]:
    """Return the texts of the user's last messages other than the query itself, the latest first."""
    texts = [text for message in messages if _field(message, "role") == "user" and (text := text_of(message))]
    earlier = [text for text in texts if text != query.strip()[:_LONGEST_MESSAGE]]
    return list(dict.fromkeys(reversed(earlier)))[:RECENT]


def text_of(message: Any) -> str:
    """Return the text of a message whose content is a text or a list of parts. Images and tool results have none."""
    content = _field(message, "content")
    parts: Sequence[Any] = [content] if isinstance(content, str) else content if isinstance(content, Sequence) else ()
    texts = [part if isinstance(part, str) else _field(part, "text") for part in parts]
    return " ".join(text.strip() for text in texts if isinstance(text, str)).strip()[:_LONGEST_MESSAGE]


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _filter_of(turn: ChatTurn) -> Filter:
    return Filter(servers=turn.servers or ())


def _discovered(match: ToolMatch, score: float) -> DiscoveredTool:
    cosine = (match.explain or {}).get("cosine", 0.0)
    return DiscoveredTool(
        tool=match.tool,
        similarity=float(cosine) if isinstance(cosine, (int, float)) else 0.0,
        score=round(score, 4),
        fit=match.fit,
    )
