"""The facade. Each public method reads as one of the three walks; the composition root is here and only here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack, overload

from toolscout.discovery.answer import answer_listing, answer_query
from toolscout.discovery.browse import count_categories, count_tags, take_page
from toolscout.discovery.check import check_count, check_detail, check_filter, check_query
from toolscout.discovery.correct import correct_terms, misspelt
from toolscout.discovery.rank import BY_TEXT, rank_candidates, rank_texts
from toolscout.discovery.related import rank_related
from toolscout.discovery.suggest import not_found
from toolscout.discovery.understand import texts_to_embed, understand, with_vectors
from toolscout.embedding import open_embedder
from toolscout.embedding.guarded import GuardedEmbedder
from toolscout.errors import DimensionError, EmbedderError, EmptyQueryError, InvalidValueError
from toolscout.indexing.embed import embed_missing
from toolscout.indexing.fetch import fetch_servers
from toolscout.indexing.publish import publish
from toolscout.indexing.taxonomy import describe_category
from toolscout.models import (
    Answer,
    Caller,
    Category,
    Detail,
    Facets,
    Filter,
    IndexReport,
    Intent,
    Match,
    Overview,
    Pagination,
    Query,
    Ranked,
    SearchOptions,
    Tag,
)
from toolscout.policy.rules import may_see
from toolscout.ports import Embedder, Progress, Store, ToolProvider
from toolscout.providers.rows import group_rows, read_jsonl
from toolscout.settings import Settings
from toolscout.storage import open_store

_ANYONE = Caller()
_WIDE = 1_000
_SIMILAR = 200


class Scout:
    """A catalogue of tools: index it, search it, browse it. Use it as `async with Scout.open(...) as scout`."""

    def __init__(self, *, store: Store, embedder: Embedder | None, settings: Settings) -> None:
        """Put a scout together from its parts; `Scout.open` does that from settings."""
        self._store = store
        self._embedder = GuardedEmbedder(embedder, settings) if embedder else None
        self._settings = settings
        self._tools: Iterable[Mapping[str, Any]] | str | Path | None = None

    @classmethod
    def open(
        cls,
        *,
        tools: Iterable[Mapping[str, Any]] | str | Path | None = None,
        store: str | None = None,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
    ) -> Scout:
        """Make a scout over a store; `tools`, rows or the path of a tools.jsonl, are indexed when it is entered.

        With `tools` and no `store`, the catalogue is kept in memory; with neither, in the user's data folder.
        """
        settings = settings or Settings.from_env()
        if store is None and tools is not None and not settings.store:
            store = "memory:"
        if store is not None:
            settings = replace(settings, store=store)
        scout = cls(
            store=open_store(settings, may_see), embedder=embedder or open_embedder(settings), settings=settings
        )
        scout._tools = tools
        return scout

    async def __aenter__(self) -> Scout:
        """Open the store and index what was given."""
        try:
            await self._store.open()
            if self._tools is not None:
                await self.index_tools(self._tools)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store and the embedder."""
        await self._store.close()
        if self._embedder:
            await self._embedder.close()

    # Walk 1: index

    async def index_tools(
        self,
        tools: Iterable[Mapping[str, Any]] | str | Path,
        *,
        strict: bool = False,
        caller: Caller = _ANYONE,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Index rows, or a tools.jsonl file; the servers that they name are replaced whole, all others stay."""
        rows, bad = (
            await asyncio.to_thread(read_jsonl, tools, strict=strict) if isinstance(tools, (str, Path)) else (tools, [])
        )
        report = await self.index(group_rows(rows), strict=strict, caller=caller, progress=progress)
        return replace(report, dropped=(*bad, *report.dropped))

    async def index(
        self,
        providers: Sequence[ToolProvider],
        *,
        strict: bool = False,
        caller: Caller = _ANYONE,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Fetch, normalize, enrich, embed what changed, publish one generation; strict refuses all for one bad tool."""
        started = time.perf_counter()
        before = await self._store.overview(caller)
        prepared, collisions = await fetch_servers(self._store, providers, caller.tenant, self._settings, strict=strict)
        embedded = await embed_missing(self._store, self._embedder, prepared, before.model_id, progress)
        report = await publish(self._store, prepared, embedded, collisions, before, caller.tenant)
        return replace(report, took_ms=(time.perf_counter() - started) * 1_000)

    async def refresh(self, *, caller: Caller = _ANYONE, progress: Progress | None = None) -> IndexReport:
        """Embed what has no vector yet: after the embedder was down, or when the model changed."""
        return await self.index([], caller=caller, progress=progress)

    async def warm(self) -> None:
        """Load the model now, so that the first search does not wait for it; a failure shows in that search."""
        if self._embedder:
            with suppress(EmbedderError):
                await self._embedder.embed_queries(["warm"])

    async def remove_server(self, server: str, *, caller: Caller = _ANYONE) -> int:
        """Take a server and all its tools out of the catalogue; return how many tools went."""
        return await self._store.remove_server(caller.tenant, server)

    async def set_enabled(self, key: str, enabled: bool, *, caller: Caller = _ANYONE) -> None:
        """Switch one tool on or off; the decision survives re-indexing."""
        await self._store.set_enabled(caller.tenant, key, enabled)

    # Walk 2: discover

    @overload
    async def search_tools(self, query: str, **options: Unpack[SearchOptions]) -> Answer: ...
    @overload
    async def search_tools(self, query: list[str], **options: Unpack[SearchOptions]) -> list[Answer]: ...
    async def search_tools(
        self,
        query: str | list[str],
        *,
        tags: Sequence[str] | None = None,
        match: Match = "any",
        category: str | None = None,
        servers: Sequence[str] | None = None,
        top_k: int = 10,
        threshold: float | None = None,
        detail: Detail = "brief",
        max_tokens: int | None = None,
        ranker: str | None = None,
        explain: bool = False,
        caller: Caller = _ANYONE,
    ) -> Answer | list[Answer]:
        """Find tools by meaning and by words; several queries are answered in one pass, each with its own answer."""
        texts = [query] if isinstance(query, str) else list(query)
        asked = Query(
            text="",
            filter=Filter(tags=tuple(tags or ()), match=match, category=category, servers=tuple(servers or ())),
            ranker=ranker or self._settings.ranker,
            limit=top_k,
            threshold=threshold,
            detail=detail,
            max_tokens=max_tokens,
            explain=explain,
        )
        answers = await self._search([replace(asked, text=text) for text in texts], caller)
        return answers[0] if isinstance(query, str) else answers

    async def list_tools(
        self,
        *,
        detail: Detail = "minimal",
        category: str | None = None,
        server: str | None = None,
        page: int = 1,
        page_size: int | None = None,
        caller: Caller = _ANYONE,
    ) -> Answer:
        """List what the caller may see, page by page, in the order of keys."""
        page_size = self._settings.page_size if page_size is None else page_size
        check_count("page", page)
        check_count("page_size", page_size)
        narrow = Filter(category=category, servers=(server,) if server else ())
        tools = await self._narrowed(narrow, detail, caller)
        shown, pagination = take_page(tools, page, min(page_size, self._settings.max_page_size))
        return await self._listed(shown, len(tools), detail, caller, pagination)

    async def list_categories(self, *, caller: Caller = _ANYONE) -> list[Category]:
        """Count the tools of each category."""
        return count_categories(await self._store.facets(caller, Filter()), describe_category)

    async def list_tags(self, *, caller: Caller = _ANYONE) -> list[Tag]:
        """Count the tools of each tag."""
        return count_tags(await self._store.facets(caller, Filter()))

    async def find_by_tags(
        self, tags: Sequence[str], *, match: Match = "any", detail: Detail = "brief", caller: Caller = _ANYONE
    ) -> Answer:
        """Return the tools that carry any, or all, of the tags, in the order of keys."""
        if not tags:
            raise InvalidValueError("no tag is given", hint="name at least one; list_tags shows them")
        tools = await self._narrowed(Filter(tags=tuple(tags), match=match), detail, caller)
        return await self._listed(tools[: self._settings.max_limit], len(tools), detail, caller)

    async def get_related_tools(self, name: str, *, limit: int = 5, caller: Caller = _ANYONE) -> Answer:
        """Return what goes with a tool; each names its strongest relation to it."""
        check_count("limit", limit, self._settings.max_limit)
        visible = await self._store.facets(caller, Filter())
        tool = next((item for item in visible if item.key == name), None)
        if tool is None:
            raise not_found(name, visible)
        near = {item.key: cosine for item, cosine in await self._store.similar(caller, name, _SIMILAR)}
        return await self._answer(Query(text=name, ranker="", limit=limit), rank_related(tool, visible, near), caller)

    async def get_tool_details(self, names: str | Sequence[str], *, caller: Caller = _ANYONE) -> Answer:
        """Return full definitions; an unknown key is an error, or a suggestion where other keys were found."""
        keys = list(dict.fromkeys([names] if isinstance(names, str) else names))
        if not keys:
            raise InvalidValueError("no key is given", hint="name at least one; search_tools finds them")
        visible = {item.key: item for item in await self._store.facets(caller, Filter())}
        absent = [not_found(key, tuple(visible.values())) for key in keys if key not in visible]
        if len(absent) == len(keys):
            raise absent[0]
        shown = [visible[key] for key in keys if key in visible]
        tools = await self._store.tools(caller, keys)
        overview = await self._store.overview(caller)
        said = [f"{error.message}; nearest: {', '.join(error.suggestions) or 'none'}" for error in absent]
        return answer_listing(shown, tools, overview, "full", matched=len(shown), suggestions=said)

    # How the walk is walked

    async def _search(self, queries: Sequence[Query], caller: Caller) -> list[Answer]:
        started = time.perf_counter()
        if not queries:
            raise EmptyQueryError("no query is given", hint="say what the tool should do")
        if len(queries) > self._settings.max_queries:
            raise InvalidValueError(
                f"{len(queries)} queries in one call, over {self._settings.max_queries}", hint="ask in several calls"
            )
        overview = await self._store.overview(caller)
        for query in queries:
            check_query(query, overview.categories, self._settings)
        understood = [understand(query) for query in queries]
        intents, degraded = await self._with_vectors(queries, understood, overview)
        answers = []
        for query, needs in zip(queries, intents, strict=True):
            ranked, used = await self._ranked(query, needs, degraded, caller)
            answers.append(await self._answer(used, ranked, caller, degraded))
        took_ms = (time.perf_counter() - started) * 1_000
        return [answer.timed(took_ms) for answer in answers]

    async def _ranked(
        self, query: Query, intents: Sequence[Intent], degraded: str | None, caller: Caller
    ) -> tuple[list[Ranked], Query]:
        if degraded and query.ranker in ("semantic", "boosted"):
            query = replace(query, ranker="keyword", threshold=None)
        if query.ranker in BY_TEXT:
            tools = await self._store.facets(caller, query.filter)
            return await asyncio.to_thread(rank_texts, query, tools), query
        limit = max(self._settings.candidates, 2 * query.limit) if query.ranker == "hybrid" else _WIDE
        model_id = self._embedder.model_id if self._embedder else ""
        found = await self._store.candidates(caller, query.filter, intents, limit, model_id)
        if query.ranker == "hybrid" and (wrong := misspelt(intents, found)):
            intents = correct_terms(intents, wrong, await self._store.vocabulary(caller))
            found = await self._store.candidates(caller, query.filter, intents, limit, model_id)
        return rank_candidates(query, intents, found), query

    async def _with_vectors(
        self, queries: Sequence[Query], understood: Sequence[tuple[Intent, ...]], overview: Overview
    ) -> tuple[list[tuple[Intent, ...]], str | None]:
        """Embed all intents of all queries at once; say why where searching has to go by words alone."""
        if all(query.ranker in BY_TEXT for query in queries):
            return list(understood), None
        if self._embedder is None:
            return list(understood), "no embedder is configured (TOOLSCOUT_EMBEDDER=none): answered by words alone"
        if overview.model_id not in ("", self._embedder.model_id):
            return list(understood), (
                f"the catalogue holds vectors of {overview.model_id}, not of {self._embedder.model_id}: "
                "answered by words alone; `toolscout index` rebuilds them"
            )
        texts = list(dict.fromkeys(text for needs in understood for text in texts_to_embed(needs)))
        try:
            vectors = dict(zip(texts, await self._embedder.embed_queries(texts), strict=True))
        except DimensionError:
            raise
        except EmbedderError as error:
            return list(understood), f"{error.message}: answered by words alone"
        return [with_vectors(needs, vectors) for needs in understood], None

    async def _narrowed(self, narrow: Filter, detail: Detail, caller: Caller) -> Sequence[Facets]:
        check_detail(detail)
        check_filter(narrow, (await self._store.overview(caller)).categories)
        return await self._store.facets(caller, narrow)

    async def _listed(
        self, shown: Sequence[Facets], matched: int, detail: Detail, caller: Caller, page: Pagination | None = None
    ) -> Answer:
        tools = await self._store.tools(caller, [item.key for item in shown])
        overview = await self._store.overview(caller)
        return answer_listing(shown, tools, overview, detail, matched=matched, pagination=page)

    async def _answer(
        self, query: Query, ranked: Sequence[Ranked], caller: Caller, degraded: str | None = None
    ) -> Answer:
        tools = await self._store.tools(caller, [item.facets.key for item in ranked[: query.limit]])
        return answer_query(query, ranked, tools, await self._store.overview(caller), degraded)
