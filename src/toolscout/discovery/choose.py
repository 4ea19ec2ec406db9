"""The discover walk for one turn of a chat: search, merge core tools in, fall back openly, tell what was chosen."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolscout.chat import model_names, own_arguments
from toolscout.discovery.check import check_count
from toolscout.discovery.conversation import recent_texts
from toolscout.discovery.search import Search
from toolscout.discovery.turn import cost_of, fit_turn, found_tools
from toolscout.errors import EmptyQueryError, InvalidValueError, UsageError
from toolscout.models import (
    Caller,
    CallResult,
    ChatTurn,
    DiscoveredTool,
    Discovery,
    Facets,
    Filter,
    Overview,
    Query,
    Tool,
)
from toolscout.telemetry import described, emit

Send = Callable[[str, Mapping[str, Any], str | None], Awaitable[CallResult]]
_WIDE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """What choosing needs: a search, the keys of core tools, the servers that are down, and what calls a tool."""

    search: Search
    core: tuple[str, ...]
    down: frozenset[str]
    call: Callable[..., Awaitable[CallResult]]

    async def discover(self, turn: ChatTurn, caller: Caller) -> Discovery:
        """Choose the tools of a turn; where choosing is off or only shadowed, give them all."""
        started = time.perf_counter()
        turn, mode = self._checked(turn), self.search.settings.discovery
        overview = await self.search.store.overview(caller)
        visible = [] if turn.servers == () else await self.search.store.facets(caller, _narrow(turn))
        tools, degraded = ((), None) if mode == "off" else await self._chosen(turn, caller, visible, mode)
        took_ms = round((time.perf_counter() - started) * 1_000, 3)
        if mode != "off":
            self._tell(turn, caller, tools, overview, took_ms, degraded)
        if mode != "on":
            everything = await self._tools(caller, [item.key for item in visible])
            tools = tuple(DiscoveredTool(tool=tool, source="all") for tool in everything)
        tokens = sum(cost_of(item.tool) for item in tools)
        names = model_names(item.tool.key for item in tools)
        return Discovery(
            tools=tools,
            total_searched=len(visible),
            search_duration_ms=took_ms,
            embedding_generated=mode != "off" and degraded is None and bool(visible),
            tokens=tokens,
            tokens_saved=max(overview.tokens - tokens, 0) if mode == "on" else 0,
            names=names,
            degraded=degraded,
            send=self._sender(caller, names),
        )

    def _checked(self, turn: ChatTurn) -> ChatTurn:
        """Refuse what cannot be meant; a limit above what a turn may hold means as many as it may."""
        check_count("limit", turn.limit, self.search.settings.max_limit)
        if turn.max_tokens is not None:
            check_count("max_tokens", turn.max_tokens)
        least: Any = turn.similarity_threshold
        if least is not None and not (isinstance(least, (int, float)) and -1 <= least <= 1):
            raise InvalidValueError(
                f"similarity_threshold is a cosine from -1 to 1, not {least!r}",
                hint="leave it away for the calibrated threshold",
            )
        return replace(turn, limit=min(turn.limit, self.search.settings.turn_tools))

    async def _chosen(
        self, turn: ChatTurn, caller: Caller, visible: Sequence[Facets], mode: str
    ) -> tuple[tuple[DiscoveredTool, ...], str | None]:
        """Return the tools of the turn, and why they are not as good as they could be, where that is so.

        Nothing to go by is the app's mistake where choosing counts; a shadow disturbs nobody.
        """
        core = await self._tools(caller, self.core) if turn.include_core_tools else []
        try:
            found, degraded = await self._found(turn, caller) if visible else ([], None)
        except UsageError as error:
            if mode == "on":
                raise
            found, degraded = [], error.message
        except Exception as error:  # noqa: BLE001 - a chat must go on: core tools, then the first by key, marked
            keys = [tool.key for tool in core] + [item.key for item in visible[: turn.limit]]
            first = await self._tools(caller, list(dict.fromkeys(keys))[: turn.limit])
            found = [DiscoveredTool(tool=tool, source="fallback") for tool in first]
            degraded = f"searching failed ({type(error).__name__}): core tools and the first by key instead"
        most = self.search.settings.turn_tools
        return fit_turn(found, core, limit=turn.limit, most=most, max_tokens=turn.max_tokens), degraded

    async def _found(self, turn: ChatTurn, caller: Caller) -> tuple[list[DiscoveredTool], str | None]:
        """Search; where there are no vectors, and so no cosine to compare, the calibrated threshold decides."""
        answers = await self.search.answer(self._queries(turn), caller, self.down)
        degraded = answers[0].metadata.degraded
        if degraded and turn.similarity_threshold is not None:
            return await self._found(replace(turn, similarity_threshold=None), caller)
        return found_tools(answers, least_cosine=turn.similarity_threshold), degraded

    def _queries(self, turn: ChatTurn) -> list[Query]:
        """Ask for the request, then for what was said before; a text too long for a query is read at both ends."""
        texts = [*([turn.query] if turn.query.strip() else []), *recent_texts(turn.messages, turn.query)]
        if not texts:
            raise EmptyQueryError(
                "neither the query nor the messages say anything", hint="pass what the user wrote in this turn"
            )
        half = self.search.settings.max_query_chars // 2
        wide = turn.similarity_threshold is not None
        return [
            Query(
                text=text if len(text) <= 2 * half else f"{text[: half - 1]}\n{text[-half:]}",
                filter=_narrow(turn),
                limit=max(turn.limit, _WIDE) if wide else turn.limit,
                threshold=0.0 if wide else None,
                explain=True,
                detail="minimal",
            )
            for text in texts[: self.search.settings.max_queries]
        ]

    async def _tools(self, caller: Caller, keys: Sequence[str]) -> list[Tool]:
        found = await self.search.store.tools(caller, keys)
        return [found[key] for key in keys if key in found]

    def _sender(self, caller: Caller, shown: Mapping[str, str]) -> Send:
        """Send a call under the name and the parameters that the model was shown, also in an earlier turn."""

        async def send(name: str, arguments: Mapping[str, Any], version: str | None) -> CallResult:
            key = shown.get(name)
            if key is None:
                visible = await self.search.store.facets(caller, Filter())
                key = model_names(item.key for item in visible).get(name, name)
            for tool in await self._tools(caller, [key]):
                arguments = own_arguments(tool.input_schema, arguments)
            return await self.call(key, arguments, version=version, caller=caller)

        return send

    def _tell(
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


def _narrow(turn: ChatTurn) -> Filter:
    return Filter(servers=turn.servers or ())
