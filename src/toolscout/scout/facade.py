"""The facade and composition root: `Scout` puts the parts together, and its methods are the three pipelines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack, overload

from toolscout.chat import Discovery
from toolscout.config import Config, read_config
from toolscout.discovery.chat_turn import ChatToolSelector
from toolscout.discovery.search import Search
from toolscout.embedding import open_embedder
from toolscout.embedding.guarded import GuardedEmbedder
from toolscout.errors import EmbedderError
from toolscout.execution.pipeline import CallPipeline
from toolscout.models import (
    Answer,
    Caller,
    CallResult,
    Category,
    ChatTurn,
    Detail,
    Filter,
    IndexReport,
    Match,
    Overview,
    Query,
    SearchOptions,
    Tag,
    ToolSort,
)
from toolscout.parameter_names import accepts_other_names
from toolscout.policy import Rules, read_policy
from toolscout.policy.limits import Limits
from toolscout.ports import CustomServer, Embedder, Progress, Store, ToolProvider, ToolSource, Upstream
from toolscout.scout.access import Access
from toolscout.scout.api_keys import ApiKeys
from toolscout.scout.browsing import CatalogueBrowser, each_name
from toolscout.scout.decisions import Decisions
from toolscout.scout.indexer import Indexer
from toolscout.scout.item_screen import ItemScreen
from toolscout.scout.servers import LiveServers, Sources
from toolscout.scout.sync import CatalogueSync
from toolscout.settings import Settings
from toolscout.sources import as_source, read_rows
from toolscout.storage import open_store
from toolscout.telemetry import AuditLog, Metrics


@accepts_other_names
class Scout:
    """A catalogue of tools: index it, search it, browse it. Use it as `async with Scout.open(...) as scout`."""

    def __init__(
        self,
        *,
        store: Store,
        embedder: Embedder | None,
        settings: Settings,
        rules: Rules | None = None,
        servers: Sequence[CustomServer] = (),
    ) -> None:
        """Put a scout together from its parts. `Scout.open` does that from settings."""
        metrics = self.metrics = Metrics()
        """What is counted of searches, calls and indexing."""
        self._store = store
        self._embedder = GuardedEmbedder(embedder, settings, metrics=metrics) if embedder else None
        self._settings = settings
        self._tools: Iterable[Mapping[str, Any]] | str | Path | None = None
        self._config: Config | None = Config() if servers else None
        self._core: tuple[str, ...] = ()
        rules = rules or Rules()
        audit = AuditLog.at(settings.audit, settings.audit_bytes, required=settings.audit_required, metrics=metrics)
        self.servers = LiveServers(settings, servers, store, audit, metrics)
        """The live servers: their status, each by its slug, and the accounts of people at them."""
        self._sources = Sources(self.servers)
        self._indexer = Indexer(store=store, embedder=self._embedder, settings=settings, audit=audit, metrics=metrics)
        self.sync: CatalogueSync | None = None
        """What keeps the catalogue in step with the live servers, once they are connected."""
        self._search = Search(store=store, embedder=self._embedder, settings=settings)
        self._browser = CatalogueBrowser(store=store, settings=settings)
        pool, find, limits = self._indexer.workers, self._sources.find, Limits(rules.policy)
        self._calls = CallPipeline(store=store, source_of=find, rules=rules, limits=limits, audit=audit, isolation=pool)
        self.access = Access(store, rules, limits, audit, ItemScreen(pool, settings, audit))
        """The access policy."""
        self.api_keys = ApiKeys(store, audit)
        """The API keys of all tenants."""
        self.decisions = Decisions(store, self._indexer, audit)
        """What an operator decides about tools and their definitions."""

    @classmethod
    def open(
        cls,
        config: str | Path | Sequence[str | Path] | Config | None = None,
        *,
        tools: Iterable[Mapping[str, Any]] | str | Path | None = None,
        core: Sequence[str] = (),
        store: str | None = None,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
        servers: Sequence[CustomServer] = (),
    ) -> Scout:
        """Make a scout over a store.

        `config` (files such as mcp.json) and `tools` (rows, or a file) are indexed on entering. `tools` without `store`
        are in memory, else in the user's data folder. `discover_tools` always includes `core`. `servers` are live ones.
        """
        settings = settings or Settings.from_env()
        default = "memory:" if tools is not None and not settings.store else settings.store
        settings = replace(settings, store=default if store is None else store)
        rules = Rules(read_policy(settings.policy) if settings.policy else None)
        embedder, catalogue = embedder or open_embedder(settings), open_store(settings, rules)
        scout = cls(store=catalogue, embedder=embedder, settings=settings, rules=rules, servers=servers)
        scout._tools, scout._core = tools, each_name(core)
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
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        """End every session, then close the store and the embedder."""
        if self.sync:
            await self.sync.close()
        await self._indexer.workers.close()
        await self._store.close()
        if self._embedder:
            await self._embedder.close()

    # Pipeline 1: index
    async def index_tools(
        self,
        tools: Iterable[Mapping[str, Any]] | str | Path,
        *,
        strict: bool = False,
        caller: Caller | None = None,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Index rows, or a tools.jsonl file. All tools of the servers that they name are replaced. Others stay."""
        sources, bad_lines = await asyncio.to_thread(read_rows, tools, strict=strict)
        report = await self.index(sources, strict=strict, caller=caller, progress=progress)
        return replace(report, dropped=(*bad_lines, *report.dropped))

    async def index(
        self,
        sources: Sequence[ToolSource],
        *,
        strict: bool = False,
        caller: Caller | None = None,
        progress: Progress | None = None,
    ) -> IndexReport:
        """List, prepare, embed what changed, publish one generation. With `strict`, one bad tool refuses them all."""
        return await self._indexer.index(sources, self._as(caller).scope, strict=strict, progress=progress)

    async def index_server_tools(
        self,
        server: str,
        tools: Iterable[Mapping[str, Any]] | ToolProvider | ToolSource | None = None,
        *,
        user_id: str | None = None,
        trusted: bool = False,
        caller: Caller | None = None,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Index one server for everyone, or for one user alone: its definitions, or what lists and calls its tools.

        Without `tools`, a server that is known is listed again. Only a `trusted` one can say that a tool only reads.
        """
        scope = self._as(caller, user_id).scope
        if tools is None:
            source = self._sources.find(scope, await self._indexer.slug_of(scope, server))
        else:
            source = as_source(server, tools, trusted=trusted, timeout_s=self._settings.call_timeout_s)
        report = await self._indexer.index([source], scope, progress=progress)
        self._sources.keep(scope, await self._indexer.slug_of(scope, source.server.title), source)
        return report

    async def refresh(
        self, *, user_id: str | None = None, caller: Caller | None = None, progress: Progress | None = None
    ) -> IndexReport:
        """List the servers that were indexed by hand again, and embed what has no vector yet."""
        scope = self._as(caller, user_id).scope
        return await self._indexer.index(self._sources.by_hand(scope), scope, progress=progress)

    async def update_vectors(self, *, progress: Progress | None = None) -> int:
        """Embed the catalogue anew if its vectors are of another model, once across processes. Return how many."""
        return await self._indexer.update_vectors(progress)

    async def warm(self) -> None:
        """Load the model now, so that the first search does not wait for it. A failure shows in that search."""
        if self._embedder:
            with suppress(EmbedderError):
                await self._embedder.embed_queries(["warm"])

    async def remove_server(self, server: str, *, user_id: str | None = None, caller: Caller | None = None) -> int:
        """Remove a server and all its tools, everyone's or a user's. Return how many tools were removed."""
        scope = self._as(caller, user_id).scope
        slug = await self._indexer.slug_of(scope, server)
        await self._sources.remove(scope, slug)
        return await self._indexer.remove_server(scope, slug)

    async def remove_user(self, user_id: str, *, caller: Caller | None = None) -> int:
        """Remove everything that a user added. Return how many tools were removed."""
        scope = self._as(caller, user_id).scope
        await self._sources.remove_user(scope)
        return await self._indexer.remove_user(scope.tenant, user_id)

    async def set_enabled(self, key: str, enabled: bool, *, caller: Caller | None = None) -> None:
        """Switch one tool on or off. The decision survives re-indexing."""
        await self.decisions.switch(self._as(caller).scope, [key], enabled)

    # Pipeline 2: discover
    @overload
    async def search_tools(
        self, query: str, tags: Sequence[str] | None = ..., top_k: int = ..., **options: Unpack[SearchOptions]
    ) -> Answer: ...
    @overload
    async def search_tools(
        self, query: list[str], tags: Sequence[str] | None = ..., top_k: int = ..., **options: Unpack[SearchOptions]
    ) -> list[Answer]: ...
    async def search_tools(
        self,
        query: str | list[str],
        tags: Sequence[str] | None = None,
        top_k: int = 10,
        *,
        limit: int | None = None,
        match: Match = "any",
        category: str | None = None,
        servers: Sequence[str] | None = None,
        threshold: float | None = None,
        detail: Detail = "brief",
        max_tokens: int | None = None,
        ranker: str | None = None,
        explain: bool = False,
        top_k_services: int | None = None,
        caller: Caller | None = None,
    ) -> Answer | list[Answer]:
        """Find tools by meaning and by words. Several queries are answered in one pass, each with its own answer.

        `limit` is another name of `top_k`. For the ranker `boosted`, hits come from the best `top_k_services` servers.
        """
        options = Query(
            text="",
            filter=Filter(tags=each_name(tags), match=match, category=category, servers=each_name(servers)),
            ranker=ranker or self._settings.ranker,
            limit=top_k if limit is None else limit,
            threshold=threshold,
            detail=detail,
            max_tokens=max_tokens,
            explain=explain,
            top_k_services=top_k_services,
        )
        queries = [replace(options, text=text) for text in ([query] if isinstance(query, str) else query)]
        search = self._search.search(queries, who := caller or self.caller, await self.servers.down(who))
        answers = await self.metrics.measure_search(search)
        return answers[0] if isinstance(query, str) else answers

    async def discover_tools(
        self,
        query: str,
        user_id: str | None = None,
        limit: int = 8,
        *,
        top_k: int | None = None,
        similarity_threshold: float | None = None,
        include_core_tools: bool = True,
        server_ids: Sequence[str] | None = None,
        messages: Iterable[Any] | None = None,
        max_tokens: int | None = None,
        caller: Caller | None = None,
    ) -> Discovery:
        """Choose the tools of one chat turn: the best `limit` (or `top_k`) for the query, and the core tools.

        `similarity_threshold` is a cosine, `messages` the conversation so far, `max_tokens` bounds the definitions.
        """
        caller = self._as(caller or self.caller, user_id)
        turn = ChatTurn(
            query=query,
            limit=limit if top_k is None else top_k,
            similarity_threshold=similarity_threshold,
            include_core_tools=include_core_tools,
            servers=None if server_ids is None else each_name(server_ids),
            messages=messages or (),
            max_tokens=max_tokens,
        )
        core = tuple(dict.fromkeys((*self._core, *(self.sync.core if self.sync else ()))))
        selector = ChatToolSelector(search=self._search, core=core, down=await self.servers.down(caller))
        find, call = partial(selector.find_tool, caller=caller), partial(self.call_tool, caller=caller)
        selection = await self.metrics.measure_turn(selector.select(turn, caller))
        return Discovery.of(selection, find_tool=find, call_tool=call)

    async def list_tools(
        self,
        detail: Detail = "minimal",
        category: str | None = None,
        server: str | None = None,
        page: int = 1,
        page_size: int | None = None,
        *,
        tags: Sequence[str] | None = None,
        match: Match = "any",
        sort: ToolSort = "key",
        text: str = "",
        caller: Caller | None = None,
    ) -> Answer:
        """List what the caller may see with all words of `text`, page by page. A minus before `sort` reverses it."""
        narrow = Filter(tags=each_name(tags), match=match, category=category, servers=each_name(server))
        return await self._browser.page(narrow, detail, page, page_size, caller or self.caller, sort, text)

    async def overview(self, *, caller: Caller | None = None) -> Overview:
        """Return the totals of what the caller may see, and the generation of the catalogue."""
        return await self._store.overview(caller or self.caller)

    async def ping(self) -> None:
        """Check that the store answers. Raise StoreError when it cannot be reached now."""
        await self._store.ping()

    async def list_categories(self, *, caller: Caller | None = None) -> list[Category]:
        """Count the tools of each category."""
        return await self._browser.count_categories(caller or self.caller)

    async def list_tags(self, *, caller: Caller | None = None) -> list[Tag]:
        """Count the tools of each tag."""
        return await self._browser.count_tags(caller or self.caller)

    async def find_by_tags(
        self, tags: Sequence[str], match: Match = "any", detail: Detail = "brief", *, caller: Caller | None = None
    ) -> Answer:
        """Return the tools that carry any, or all, of the tags, in the order of keys."""
        return await self._browser.tagged(Filter(tags=each_name(tags), match=match), detail, caller or self.caller)

    async def get_related_tools(self, name: str, limit: int = 5, *, caller: Caller | None = None) -> Answer:
        """Return the tools that go with a tool (its key, or its name), each with its strongest relation to it."""
        return await self._browser.related(name, limit, caller or self.caller)

    async def get_tool_details(self, names: str | Sequence[str], *, caller: Caller | None = None) -> Answer:
        """Return full definitions. An unknown key is an error, or a suggestion if other keys exist."""
        return await self._browser.details(names, caller or self.caller)

    # Pipeline 3: execute
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
        """Route a key to its tool, check policy, limits and arguments, and call it, exactly once."""
        caller = caller or self.caller
        return await self._calls.run(
            key, arguments, caller=caller, version=version, read_only=read_only, upstream=upstream, extra=extra
        )

    async def reach(self, *, caller: Caller | None = None) -> frozenset[str]:
        """Return the servers with a tool that the caller may call. Their resources and prompts are open to them too."""
        return await self._calls.callable_servers(caller or self.caller)

    @property
    def caller(self) -> Caller:
        """Return the default caller: the local user, who reaches the servers of the config."""
        return self.narrow(Caller())

    def narrow(self, caller: Caller) -> Caller:
        """Limit the caller to the servers that their tenant reaches. If none is connected, there is no limit."""
        return self._sources.narrow(caller)

    async def connect(self, config: Config, *, after: Awaitable[object] | None = None) -> CatalogueSync:
        """Begin to connect the servers of a config once `after` is done, or follow an edit of it. Return at once."""
        self._browser.categories = config.categories
        if self.sync:
            await self.sync.apply(config)
            return self.sync
        self.sync = CatalogueSync(self._indexer, self.servers, self._settings)
        self._sources.connected = True
        await self.sync.start(config, after)
        return self.sync

    def _as(self, caller: Caller | None, user_id: str | None = None) -> Caller:
        return (caller or Caller()) if user_id is None else replace(caller or Caller(), user=user_id)
