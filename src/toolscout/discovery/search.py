"""The search pipeline: each query becomes a state that passes through a list of stages and ends as an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolscout.discovery.answers import NONE_DOWN, answer_query
from toolscout.discovery.checks import check_queries, check_servers, check_tags
from toolscout.discovery.diversity import is_crowded
from toolscout.discovery.rank import BY_TEXT, BY_VECTOR, rank_candidates, rank_texts
from toolscout.discovery.request import (
    UnderstoodRequest,
    correct_typos,
    possible_typos,
    recognize_servers,
    understand,
)
from toolscout.errors import DimensionError, EmbedderError
from toolscout.models import (
    Answer,
    Caller,
    Candidates,
    Filter,
    Fit,
    Overview,
    Query,
    Ranked,
    Ranking,
    Scope,
)
from toolscout.ports import Embedder, Store
from toolscout.settings import Settings
from toolscout.telemetry import span
from toolscout.text import words_of_servers

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_CANDIDATES_BY_VECTOR = 1_000
"""How many candidates `semantic` and `boosted` score. `hybrid` takes as many as the settings say."""
_MORE_IF_CROWDED = 10
"""By how much the number of candidates grows if untrusted tools may have left no room for trusted ones."""
_UNRANKED = Ranking(best=(), matched=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """One query on its way through the stages. Each stage returns a new state."""

    caller: Caller
    overview: Overview
    query: Query
    request: UnderstoodRequest
    candidates: Candidates | None = None
    """None for the rankers that read every tool's text."""
    ranking: Ranking = _UNRANKED

    @property
    def is_hybrid(self) -> bool:
        """Whether the ranker is `hybrid`, which alone corrects typos and makes room for trusted tools."""
        return self.query.ranker == "hybrid"

    @property
    def needs_vectors(self) -> bool:
        """Whether the ranker uses vectors."""
        return self.query.ranker not in BY_TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Searches a store, with an embedder if there is one, within the limits of the settings."""

    store: Store
    embedder: Embedder | None
    settings: Settings

    async def search(self, queries: Sequence[Query], caller: Caller, down: Mapping[str, str]) -> list[Answer]:
        """Answer queries. A server or tag that does not exist for the caller is an error, not an empty answer."""
        started = time.perf_counter()
        with span("search_tools") as current:
            if self.settings.log_queries:
                current.set({"toolscout.query": " | ".join(query.text for query in queries)})
            for servers in {query.filter.servers for query in queries}:
                await check_servers(self.store, servers, caller)
            answers = await self.answer(queries, caller, down)
            if queries[0].filter.tags and not any(answers):
                await check_tags(self.store, queries[0].filter.tags, caller)
            current.set(
                {
                    "toolscout.ranker": answers[0].metadata.ranker,
                    "toolscout.hits": sum(map(len, answers)),
                    "toolscout.degraded": any(answer.metadata.degraded for answer in answers),
                }
            )
        took_ms = (time.perf_counter() - started) * 1_000
        return [answer.timed(took_ms) for answer in answers]

    async def answer(
        self, queries: Sequence[Query], caller: Caller, down: Mapping[str, str] = NONE_DOWN
    ) -> list[Answer]:
        """Answer queries whose servers and tags are not checked. `down` are the servers that do not respond now."""
        answers = []
        for state in await self.rank(queries, caller):
            tools = await self.store.tools(caller, [item.facets.key for item in state.ranking.best])
            degraded = state.request.degraded
            answers.append(answer_query(state.query, state.ranking, tools, state.overview, degraded, down))
        return answers

    async def rank(self, queries: Sequence[Query], caller: Caller) -> list[SearchState]:
        """Check and understand the queries, embed them all at once, then rank one after the other."""
        overview = await self.store.overview(caller)
        check_queries(queries, overview.categories, self.settings)
        states = [
            SearchState(caller=caller, overview=overview, query=query, request=understand(query, overview.servers))
            for query in queries
        ]
        return [await self._pass_stages(state) for state in await self._embed(states)]

    async def _pass_stages(self, state: SearchState) -> SearchState:
        for stage in (
            self._fall_back_to_keyword,
            self._fetch_candidates,
            self._correct_typos,
            self._make_room_for_trusted,
            self._recognize_servers,
            self._rank,
            self._fill,
        ):
            state = await stage(state)
        return state

    async def _embed(self, states: Sequence[SearchState]) -> list[SearchState]:
        """Embed all requests at once. If that is not possible, they go on by words alone, marked with the reason."""
        needy = [state for state in states if state.needs_vectors]
        if not needy:
            return list(states)
        vectors: Mapping[str, FloatArray] = {}
        reason = self._why_no_vectors(needy[0].overview)
        if self.embedder and not reason:
            texts = list(dict.fromkeys(intent.text for state in needy for intent in state.request.intents))
            try:
                with span("embed"):
                    vectors = dict(zip(texts, await self.embedder.embed_queries(texts), strict=True))
            except DimensionError:
                raise
            except EmbedderError as error:
                reason = f"{error.message}: answered by words alone"

        def embed(request: UnderstoodRequest) -> UnderstoodRequest:
            return request.by_words_alone(reason) if reason else request.with_vectors(vectors)

        return [replace(state, request=embed(state.request)) if state.needs_vectors else state for state in states]

    def _why_no_vectors(self, overview: Overview) -> str | None:
        if self.embedder is None:
            return "no embedder is configured (TOOLSCOUT_EMBEDDER=none): answered by words alone"
        if overview.model_id not in ("", self.embedder.model_id):
            return (
                f"the catalogue holds vectors of {overview.model_id}, not of {self.embedder.model_id}: "
                "answered by words alone; `toolscout index` rebuilds them"
            )
        return None

    async def _fall_back_to_keyword(self, state: SearchState) -> SearchState:
        """Answer by `keyword` if the ranker needs vectors and there are none."""
        if state.request.degraded and state.query.ranker in BY_VECTOR:
            return replace(state, query=replace(state.query, ranker="keyword", threshold=None))
        return state

    async def _fetch_candidates(self, state: SearchState, factor: int = 1) -> SearchState:
        query = state.query
        if query.ranker in BY_TEXT:
            return state
        if query.ranker == "boosted":
            query = replace(query, filter=replace(query.filter, match="all"))
        limit = max(self.settings.candidates, 2 * query.limit) if state.is_hybrid else _CANDIDATES_BY_VECTOR
        model_id = self.embedder.model_id if self.embedder else ""
        with span("candidates"):
            candidates = await self.store.candidates(
                state.caller, query.filter, state.request.intents, factor * limit, model_id
            )
        return replace(state, query=query, candidates=candidates)

    async def _correct_typos(self, state: SearchState) -> SearchState:
        """Search again for a request with typos. It is embedded anew, and its state says if that failed."""
        if state.candidates is None or not state.is_hybrid:
            return state
        typos = possible_typos(state.request, state.candidates)
        if not typos:
            return state
        vocabulary = words_of_servers(state.overview.servers).union(await self.store.vocabulary(state.caller))
        request = correct_typos(state.request, typos, sorted(vocabulary))
        if not request.corrections:
            return state
        state = replace(state, request=request)
        if not request.degraded:
            (state,) = await self._embed([state])
        return await self._fetch_candidates(state)

    async def _make_room_for_trusted(self, state: SearchState) -> SearchState:
        """Fetch more candidates if most are untrusted, and the caller sees a trusted server at all."""
        if state.candidates is None or not state.is_hybrid or not is_crowded(state.candidates):
            return state
        for scope in {Scope(tenant=state.caller.tenant), state.caller.scope}:
            for server in await self.store.servers(scope):
                if server.trusted and server.key in state.overview.servers:
                    return await self._fetch_candidates(state, _MORE_IF_CROWDED)
        return state

    async def _recognize_servers(self, state: SearchState) -> SearchState:
        if state.candidates is None or not state.is_hybrid:
            return state
        return replace(state, request=recognize_servers(state.request, state.candidates))

    async def _rank(self, state: SearchState) -> SearchState:
        if state.candidates is not None:
            with span("rank"):
                return replace(state, ranking=rank_candidates(state.query, state.request, state.candidates))
        with span("candidates"):
            tools = await self.store.facets(state.caller, state.query.filter)
        with span("rank"):
            return replace(state, ranking=await asyncio.to_thread(rank_texts, state.query, tools))

    async def _fill(self, state: SearchState) -> SearchState:
        """Show the tools that a filter leaves, as weak hits, if not one of them has a word of the request."""
        query = state.query
        if state.ranking.best or query.threshold is not None or query.filter == Filter():
            return state
        tools = await self.store.facets(state.caller, query.filter)
        fit: Fit | None = "weak" if state.is_hybrid else None
        best = [Ranked(facets=item, score=0.0, fit=fit) for item in tools[: query.limit]]
        return replace(state, ranking=Ranking(best=best, matched=len(tools)))
