"""The facade. Each public method reads as one of the three walks; the composition root is here and only here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack, overload

from toolscout.config import Config, read_config
from toolscout.discovery.answer import answer_listing, answer_query
from toolscout.discovery.browse import count_categories, count_tags, take_page
from toolscout.discovery.check import check_count, check_detail, check_filter
from toolscout.discovery.related import rank_related
from toolscout.discovery.search import Search
from toolscout.discovery.suggest import not_found
from toolscout.embedding import open_embedder
from toolscout.embedding.guarded import GuardedEmbedder
from toolscout.errors import (
    EmbedderError,
    InvalidValueError,
    ServerUnavailableError,
    ToolNotFoundError,
)
from toolscout.execution.call import call
from toolscout.indexing.embed import embed_missing
from toolscout.indexing.fetch import fetch_servers
from toolscout.indexing.publish import publish
from toolscout.indexing.taxonomy import describe_category
from toolscout.models import (
    Answer,
    Caller,
    CallResult,
    Category,
    Detail,
    Facets,
    Filter,
    IndexReport,
    Match,
    Overview,
    Pagination,
    Query,
    Ranking,
    SearchOptions,
    Tag,
)
from toolscout.policy.rules import may_see
from toolscout.ports import Embedder, Progress, Store, ToolSource, Upstream
from toolscout.providers.rows import group_rows, read_jsonl
from toolscout.settings import Settings
from toolscout.storage import open_store

if TYPE_CHECKING:
    from toolscout.live import Live

_ANYONE = Caller()
_SIMILAR = 200


class Scout:
    """A catalogue of tools: index it, search it, browse it. Use it as `async with Scout.open(...) as scout`."""

    def __init__(self, *, store: Store, embedder: Embedder | None, settings: Settings) -> None:
        """Put a scout together from its parts; `Scout.open` does that from settings."""
        self._store = store
        self._embedder = GuardedEmbedder(embedder, settings) if embedder else None
        self._settings = settings
        self._tools: Iterable[Mapping[str, Any]] | str | Path | None = None
        self._config: Config | None = None
        self._live: Live | None = None

    @classmethod
    def open(
        cls,
        config: str | Path | Sequence[str | Path] | Config | None = None,
        *,
        tools: Iterable[Mapping[str, Any]] | str | Path | None = None,
        store: str | None = None,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
    ) -> Scout:
        """Make a scout over a store.

        The servers of `config` (files such as mcp.json) are connected and indexed when the scout is entered, and so are
        `tools`: rows, or the path of a tools.jsonl. With `tools` and no `store`, the catalogue is kept in memory;
        otherwise in the user's data folder.
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
        if config is not None:
            scout._config = config if isinstance(config, Config) else read_config(config)
        return scout

    async def __aenter__(self) -> Scout:
        """Open the store and index what was given."""
        try:
            await self._store.open()
            if self._tools is not None:
                await self.index_tools(self._tools)
            if self._config is not None:
                await (await self.connect(self._config)).settled()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every session, then close the store and the embedder."""
        if self._live:
            await self._live.close()
        await self._store.close()
        if self._embedder:
            await self._embedder.close()

    # Walk 1: index

    async def index_tools(
        self,
        tools: Iterable[Mapping[str, Any]] | str | Path,
        *,
        strict: bool = False,
        caller: Caller | None = None,
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
        sources: Sequence[ToolSource],
        *,
        strict: bool = False,
        caller: Caller | None = None,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Fetch, normalize, enrich, embed what changed, publish one generation; strict refuses all for one bad tool."""
        caller = caller or self.caller
        started = time.perf_counter()
        before = await self._store.overview(caller)
        prepared, collisions = await fetch_servers(self._store, sources, caller.scope, self._settings, strict=strict)
        embedded = await embed_missing(self._store, self._embedder, prepared, before.model_id, progress)
        report = await publish(self._store, prepared, embedded, collisions, before, caller.scope)
        return replace(report, took_ms=(time.perf_counter() - started) * 1_000)

    async def refresh(self, *, caller: Caller | None = None, progress: Progress | None = None) -> IndexReport:
        """Embed what has no vector yet: after the embedder was down, or when the model changed."""
        return await self.index([], caller=caller, progress=progress)

    async def warm(self) -> None:
        """Load the model now, so that the first search does not wait for it; a failure shows in that search."""
        if self._embedder:
            with suppress(EmbedderError):
                await self._embedder.embed_queries(["warm"])

    async def remove_server(self, server: str, *, caller: Caller | None = None) -> int:
        """Take a server and all its tools out of the catalogue; return how many tools went."""
        caller = caller or self.caller
        return await self._store.remove_server(caller.scope, server)

    async def set_enabled(self, key: str, enabled: bool, *, caller: Caller | None = None) -> None:
        """Switch one tool on or off; the decision survives re-indexing."""
        caller = caller or self.caller
        try:
            await self._store.set_enabled(caller.scope, key, enabled)
        except ToolNotFoundError:
            raise not_found(key, await self._store.facets(caller, Filter())) from None

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
        top_k_services: int | None = None,
        caller: Caller | None = None,
    ) -> Answer | list[Answer]:
        """Find tools by meaning and by words; several queries are answered in one pass, each with its own answer.

        `top_k_services` is for the ranker `boosted`: how many of the best servers the hits may come from.
        """
        caller = caller or self.caller
        texts = [query] if isinstance(query, str) else list(query)
        asked = Query(
            text="",
            filter=Filter(tags=_each(tags), match=match, category=category, servers=_each(servers)),
            ranker=ranker or self._settings.ranker,
            limit=top_k,
            threshold=threshold,
            detail=detail,
            max_tokens=max_tokens,
            explain=explain,
            top_k_services=top_k_services,
        )
        search = Search(store=self._store, embedder=self._embedder, settings=self._settings)
        down = self._live.unavailable() if self._live else frozenset()
        answers = await search.answer([replace(asked, text=text) for text in texts], caller, down)
        return answers[0] if isinstance(query, str) else answers

    async def list_tools(
        self,
        *,
        detail: Detail = "minimal",
        category: str | None = None,
        server: str | None = None,
        page: int = 1,
        page_size: int | None = None,
        caller: Caller | None = None,
    ) -> Answer:
        """List what the caller may see, page by page, in the order of keys."""
        caller = caller or self.caller
        page_size = self._settings.page_size if page_size is None else page_size
        check_count("page", page)
        check_count("page_size", page_size)
        narrow = Filter(category=category, servers=(server,) if server else ())
        tools = await self._narrowed(narrow, detail, caller)
        shown, pagination = take_page(tools, page, min(page_size, self._settings.max_page_size))
        return await self._listed(shown, len(tools), detail, caller, pagination)

    async def overview(self, *, caller: Caller | None = None) -> Overview:
        """Return what the caller can see in sum, and which generation of the catalogue that is."""
        return await self._store.overview(caller or self.caller)

    async def list_categories(self, *, caller: Caller | None = None) -> list[Category]:
        """Count the tools of each category."""
        caller = caller or self.caller
        return count_categories(await self._store.facets(caller, Filter()), describe_category)

    async def list_tags(self, *, caller: Caller | None = None) -> list[Tag]:
        """Count the tools of each tag."""
        caller = caller or self.caller
        return count_tags(await self._store.facets(caller, Filter()))

    async def find_by_tags(
        self, tags: Sequence[str], *, match: Match = "any", detail: Detail = "brief", caller: Caller | None = None
    ) -> Answer:
        """Return the tools that carry any, or all, of the tags, in the order of keys."""
        caller = caller or self.caller
        if not tags:
            raise InvalidValueError("no tag is given", hint="name at least one; list_tags shows them")
        tools = await self._narrowed(Filter(tags=_each(tags), match=match), detail, caller)
        return await self._listed(tools[: self._settings.max_limit], len(tools), detail, caller)

    async def get_related_tools(self, name: str, *, limit: int = 5, caller: Caller | None = None) -> Answer:
        """Return what goes with a tool; each names its strongest relation to it."""
        caller = caller or self.caller
        check_count("limit", limit, self._settings.max_limit)
        visible = await self._store.facets(caller, Filter())
        tool = next((item for item in visible if item.key == name), None)
        if tool is None:
            raise not_found(name, visible)
        near = {item.key: cosine for item, cosine in await self._store.similar(caller, name, _SIMILAR)}
        found = rank_related(tool, visible, near)
        ranked = Ranking(best=found[:limit], matched=len(found))
        tools = await self._store.tools(caller, [item.facets.key for item in ranked.best])
        return answer_query(Query(text=name, ranker="", limit=limit), ranked, tools, await self._store.overview(caller))

    async def get_tool_details(self, names: str | Sequence[str], *, caller: Caller | None = None) -> Answer:
        """Return full definitions; an unknown key is an error, or a suggestion where other keys were found."""
        caller = caller or self.caller
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

    # Walk 3: execute

    async def call_tool(
        self,
        key: str,
        arguments: Any = None,
        *,
        version: str | None = None,
        read_only: bool = False,
        caller: Caller | None = None,
        upstream: Upstream | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> CallResult:
        """Route a key to its tool, check the arguments, and call it, exactly once."""
        caller = caller or self.caller
        tool = (await self._store.tools(caller, [key])).get(key)
        if tool is None:
            raise not_found(key, await self._store.facets(caller, Filter()))
        provider = self._live.server(tool.server) if self._live else None
        if provider is None:
            raise ServerUnavailableError(
                f"no server is connected behind {key}",
                hint="name the config that lists it, as in Scout.open('mcp.json')",
            )
        return await call(
            provider,
            tool,
            arguments,
            caller=caller,
            version=version,
            read_only=read_only,
            upstream=upstream,
            extra=extra,
        )

    # The servers behind it

    @property
    def caller(self) -> Caller:
        """Return who asks when nobody is named: the local user, who reaches the servers of the config."""
        return Caller(servers=self._live.keys) if self._live else _ANYONE

    @property
    def live(self) -> Live | None:
        """Return the live servers, where a config was given."""
        return self._live

    async def connect(self, config: Config, *, after: Awaitable[object] | None = None) -> Live:
        """Begin to connect the servers of a config, or follow its edit; return at once.

        With `after`, no server is started before that has come: who is asked first answers first.
        """
        if self._live:
            await self._live.apply(config)
            return self._live

        async def index(sources: Sequence[ToolSource]) -> IndexReport:
            return await self.index(sources, caller=_ANYONE)

        async def remove(server: str) -> int:
            return await self.remove_server(server, caller=_ANYONE)

        from toolscout.live import Live

        known = {server.key: server.title for server in await self._store.servers(_ANYONE.scope)}
        self._live = Live(config, self._settings, known=known, index=index, remove=remove)
        await self._live.start(after)
        return self._live

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


def _each(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return names as a tuple; a plain text is one name, not its letters."""
    return (names,) if isinstance(names, str) else tuple(names or ())
