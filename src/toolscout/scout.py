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

from toolscout.discovery.browse import count_categories, count_tags, take_page
from toolscout.discovery.budget import fit_budget
from toolscout.discovery.check import check_count, check_detail, check_filter, check_query
from toolscout.discovery.format import count_tokens, format_match
from toolscout.discovery.rank import BY_TEXT, rank_candidates, rank_texts
from toolscout.discovery.related import rank_related
from toolscout.discovery.suggest import not_found, nothing_fits
from toolscout.discovery.understand import understand
from toolscout.embedding import open_embedder
from toolscout.embedding.guarded import GuardedEmbedder
from toolscout.errors import BadToolError, DimensionError, EmbedderError, EmptyQueryError, InvalidValueError
from toolscout.indexing.assign import assign_slugs
from toolscout.indexing.embed import embed_missing
from toolscout.indexing.enrich import text_hash, to_document
from toolscout.indexing.prepare import prepare_server
from toolscout.indexing.taxonomy import describe_category
from toolscout.models import (
    Answer,
    Caller,
    Category,
    Detail,
    Document,
    Facets,
    Filter,
    IndexReport,
    Intent,
    Match,
    Metadata,
    Overview,
    Pagination,
    Publication,
    Query,
    Ranked,
    SearchOptions,
    Tag,
    ToolMatch,
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
        await self._store.open()
        if self._tools is not None:
            await self.index_tools(self._tools)
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
        bad: list[Dropped] = []
        if isinstance(tools, (str, Path)):
            tools, bad = await asyncio.to_thread(read_jsonl, tools, strict=strict)
        report = await self.index(group_rows(tools), strict=strict, caller=caller, progress=progress)
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
        known = {server.key: server.title for server in await self._store.servers(caller.tenant)}
        slugs, collisions = assign_slugs((provider.server.title for provider in providers), known)
        prepared = []
        for provider in providers:
            server = replace(provider.server, key=slugs[provider.server.title])
            raw = await provider.list_tools()
            published = await self._store.stamps(caller.tenant, server.key)
            prepared.append(await asyncio.to_thread(prepare_server, server, raw, published, self._settings))
        dropped = tuple(item for part in prepared for item in part.dropped)
        if strict and dropped:
            raise BadToolError(f"{dropped[0].where}: {dropped[0].reason}", hint="correct it, or do not be strict")
        documents = {entry.text_hash: entry.document for part in prepared for entry in part.entries}
        embedded, unembedded, model_id = await self._embed(documents, progress)
        overview = await self._store.overview(caller)
        generation = overview.generation
        if embedded or model_id != overview.model_id or any(part.entries or part.removed for part in prepared):
            generation = await self._store.publish(
                Publication(
                    tenant=caller.tenant,
                    servers=tuple(part.server for part in prepared),
                    entries=tuple(entry for part in prepared for entry in part.entries),
                    kept=frozenset(key for part in prepared for key in part.kept),
                    model_id=model_id,
                )
            )
        return IndexReport(
            new=sum(part.new for part in prepared),
            changed=sum(part.changed for part in prepared),
            unchanged=sum(len(part.kept) for part in prepared),
            removed=sum(part.removed for part in prepared),
            embedded=embedded,
            unembedded=unembedded,
            dropped=dropped,
            collisions=tuple(collisions),
            generation=generation,
            took_ms=(time.perf_counter() - started) * 1_000,
        )

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
        return await self._answer(rank_related(tool, visible, near), Query(text=name, ranker="", limit=limit), caller)

    async def get_tool_details(self, names: str | Sequence[str], *, caller: Caller = _ANYONE) -> Answer:
        """Return full definitions; an unknown key is an error, or a suggestion where other keys were found."""
        keys = list(dict.fromkeys([names] if isinstance(names, str) else names))
        if not keys:
            raise InvalidValueError("no key is given", hint="name at least one; search_tools finds them")
        found = await self._store.tools(caller, keys)
        absent = [key for key in keys if key not in found]
        suggestions: list[str] = []
        if absent:
            visible = await self._store.facets(caller, Filter())
            errors = [not_found(key, visible) for key in absent]
            if not found:
                raise errors[0]
            suggestions = [
                error.message + (f"; did you mean {', '.join(error.suggestions)}?" if error.suggestions else "")
                for error in errors
            ]
        matches = tuple(ToolMatch(tool=found[key], detail="full") for key in keys if key in found)
        overview = await self._store.overview(caller)
        return _sealed(matches, overview, len(matches), "", "full", None, tuple(suggestions))

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
            answers.append(await self._answer(ranked, used, caller, degraded))
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
        texts = list(dict.fromkeys(intent.text for needs in understood for intent in needs))
        try:
            vectors = dict(zip(texts, await self._embedder.embed_queries(texts), strict=True))
        except DimensionError:
            raise
        except EmbedderError as error:
            return list(understood), f"{error.message}: answered by words alone"
        return [tuple(replace(intent, vector=vectors[intent.text]) for intent in needs) for needs in understood], None

    async def _embed(self, documents: Mapping[str, Document], progress: Progress | None) -> tuple[int, int, str]:
        """Embed what is new and what an earlier failure or another model left without a vector."""
        current = (await self._store.overview(_ANYONE)).model_id
        if self._embedder is None:
            return 0, 0, current
        behind = await self._store.unembedded(self._embedder.model_id)
        wanted = {text_hash(document): document for document in map(to_document, behind)} | dict(documents)
        done, left, failure = await embed_missing(self._store, self._embedder, wanted, progress)
        return done, left, current if failure and current else self._embedder.model_id

    async def _narrowed(self, narrow: Filter, detail: Detail, caller: Caller) -> Sequence[Facets]:
        check_detail(detail)
        check_filter(narrow, (await self._store.overview(caller)).categories)
        return await self._store.facets(caller, narrow)

    async def _listed(
        self,
        shown: Sequence[Facets],
        matched: int,
        detail: Detail,
        caller: Caller,
        pagination: Pagination | None = None,
    ) -> Answer:
        tools = await self._store.tools(caller, [item.key for item in shown])
        matches = tuple(ToolMatch(tool=tools[item.key], detail=detail) for item in shown if item.key in tools)
        overview = await self._store.overview(caller)
        return _sealed(matches, overview, matched, "", detail, None, (), pagination)

    async def _answer(
        self, ranked: Sequence[Ranked], query: Query, caller: Caller, degraded: str | None = None
    ) -> Answer:
        best = ranked[: query.limit]
        tools = await self._store.tools(caller, [item.facets.key for item in best])
        matches = [
            ToolMatch(
                tool=tools[item.facets.key],
                score=item.score,
                matched_tags=item.matched_tags,
                relationship=item.relationship,
                explain=item.parts if query.explain else None,
            )
            for item in best
            if item.facets.key in tools
        ]
        overview = await self._store.overview(caller)
        suggestions = () if matches else nothing_fits(query.text, overview.categories)
        fitted = fit_budget(matches, query.detail, query.max_tokens)
        return _sealed(fitted, overview, len(ranked), query.ranker, query.detail, degraded, suggestions)


def _sealed(
    matches: tuple[ToolMatch, ...],
    overview: Overview,
    matched: int,
    ranker: str,
    detail: Detail,
    degraded: str | None,
    suggestions: tuple[str, ...] = (),
    pagination: Pagination | None = None,
) -> Answer:
    tokens = count_tokens([format_match(match) for match in matches])
    metadata = Metadata(
        total=overview.total,
        matched=matched,
        returned=len(matches),
        tokens=tokens,
        tokens_saved=max(overview.tokens - tokens, 0),
        ranker=ranker,
        detail=detail,
        categories_available=overview.categories,
        degraded=degraded,
        stale=overview.stale,
    )
    return Answer(matches=matches, metadata=metadata, pagination=pagination, suggestions=suggestions)
