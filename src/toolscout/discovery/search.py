"""The discover walk from its first stage to its last: check, understand, embed, look up, rank, answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolscout.discovery.answers import answer_query
from toolscout.discovery.checks import check_queries, check_servers, check_tags
from toolscout.discovery.correct import correct_terms, misspelt
from toolscout.discovery.rank import BY_TEXT, rank_candidates, rank_texts
from toolscout.discovery.spread import crowded
from toolscout.discovery.understand import understand, with_vectors
from toolscout.errors import DimensionError, EmbedderError
from toolscout.models import Answer, Caller, Intent, Overview, Query, Ranking, Scope
from toolscout.ports import Embedder, Store
from toolscout.settings import Settings

_WIDE = 1_000
_CROWD = 10
_BY_VECTOR = ("semantic", "boosted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What searching needs: a store, an embedder if there is one, the limits."""

    store: Store
    embedder: Embedder | None
    settings: Settings

    async def search(self, queries: Sequence[Query], caller: Caller, down: frozenset[str]) -> list[Answer]:
        """Answer what names only servers and tags that there are; a name that fits nothing is told as such."""
        for servers in {query.filter.servers for query in queries}:
            await check_servers(self.store, servers, caller)
        answers = await self.answer(queries, caller, down)
        if queries[0].filter.tags and not any(answers):
            await check_tags(self.store, queries[0].filter.tags, caller)
        return answers

    async def answer(
        self, queries: Sequence[Query], caller: Caller, down: frozenset[str] = frozenset()
    ) -> list[Answer]:
        """Check, understand, embed all at once; then for each query: candidates, ranking, answer."""
        started = time.perf_counter()
        overview = await self.store.overview(caller)
        check_queries(queries, overview.categories, self.settings)
        understood = [understand(query) for query in queries]
        intents, degraded = await self._with_vectors(queries, understood, overview)
        answers = []
        for query, needs in zip(queries, intents, strict=True):
            ranking, used = await self._ranked(query, needs, degraded, caller, overview)
            tools = await self.store.tools(caller, [item.facets.key for item in ranking.best])
            answers.append(answer_query(used, ranking, tools, overview, degraded, down))
        took_ms = (time.perf_counter() - started) * 1_000
        return [answer.timed(took_ms) for answer in answers]

    async def _ranked(
        self, query: Query, intents: tuple[Intent, ...], degraded: str | None, caller: Caller, overview: Overview
    ) -> tuple[Ranking, Query]:
        if degraded and query.ranker in _BY_VECTOR:
            query = replace(query, ranker="keyword", threshold=None)
        if query.ranker in BY_TEXT:
            tools = await self.store.facets(caller, query.filter)
            return await asyncio.to_thread(rank_texts, query, tools), query
        if query.ranker == "boosted":
            query = replace(query, filter=replace(query.filter, match="all"))
        limit = max(self.settings.candidates, 2 * query.limit) if query.ranker == "hybrid" else _WIDE
        model_id = self.embedder.model_id if self.embedder else ""
        found = await self.store.candidates(caller, query.filter, intents, limit, model_id)
        if query.ranker == "hybrid" and (wrong := misspelt(intents, found)):
            corrected = correct_terms(intents, wrong, await self.store.vocabulary(caller))
            if any(new is not old for new, old in zip(corrected, intents, strict=True)):
                (intents,) = [corrected] if degraded else (await self._with_vectors([query], [corrected], overview))[0]
                found = await self.store.candidates(caller, query.filter, intents, limit, model_id)
        if query.ranker == "hybrid" and crowded(found) and await self._trusts(caller, overview.servers):
            found = await self.store.candidates(caller, query.filter, intents, _CROWD * limit, model_id)
        return rank_candidates(query, intents, found), query

    async def _trusts(self, caller: Caller, seen: Sequence[str]) -> bool:
        """Tell whether the caller sees a server that is trusted: where there is none, nobody is crowded out."""
        for scope in {Scope(tenant=caller.tenant), caller.scope}:
            if any(server.trusted and server.key in seen for server in await self.store.servers(scope)):
                return True
        return False

    async def _with_vectors(
        self, queries: Sequence[Query], understood: Sequence[tuple[Intent, ...]], overview: Overview
    ) -> tuple[list[tuple[Intent, ...]], str | None]:
        """Embed all intents of all queries at once; say why where searching has to go by words alone."""
        if all(query.ranker in BY_TEXT for query in queries):
            return list(understood), None
        if self.embedder is None:
            return list(understood), "no embedder is configured (TOOLSCOUT_EMBEDDER=none): answered by words alone"
        if overview.model_id not in ("", self.embedder.model_id):
            return list(understood), (
                f"the catalogue holds vectors of {overview.model_id}, not of {self.embedder.model_id}: "
                "answered by words alone; `toolscout index` rebuilds them"
            )
        texts = list(dict.fromkeys(intent.text for needs in understood for intent in needs))
        try:
            vectors = dict(zip(texts, await self.embedder.embed_queries(texts), strict=True))
        except DimensionError:
            raise
        except EmbedderError as error:
            return list(understood), f"{error.message}: answered by words alone"
        return [with_vectors(needs, vectors) for needs in understood], None
