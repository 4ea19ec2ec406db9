"""Search in the database, for a tenant that is too large for memory.

The database filters, counts and returns candidate rows. Which of them are the best, and the evidence for each, is then
decided by the same code as in memory. The access filter is asked for every row that is returned to a caller.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from cachetools import LRUCache
from psycopg import AsyncConnection

from toolscout.models import Caller, Candidates, Facets, Filter, Intent, Overview, Scope, Tool
from toolscout.ports import AccessFilter
from toolscout.settings import Settings
from toolscout.storage.columns import read_facets, read_tool
from toolscout.storage.index.postings import PACKED, InvertedIndex, term_id
from toolscout.storage.index.segment import Segment
from toolscout.storage.index.snapshot import collect_candidates, nearest_tools, term_weights, usable_intents
from toolscout.storage.index.vectors import VectorIndex
from toolscout.storage.postgres.candidates import best_by_words, nearest
from toolscout.storage.postgres.encoding import TIERS, from_halves, label_lexeme, storable, term_lexeme
from toolscout.storage.postgres.pool import ConnectionPool, fetch_all
from toolscout.storage.postgres.tenant_view import (
    ScopeQuery,
    ScopeView,
    TenantState,
    TenantView,
    filter_scope,
    read_state,
    read_view,
)

if TYPE_CHECKING:
    from toolscout.models import BoolArray

_Result = TypeVar("_Result")

EXACT_ROWS = 20_000
"""Up to this many visible rows every vector is compared, which measured faster and better than the graph."""

_INLINE_ROWS = 2_000
_CACHE_ENTRIES = 256
_CACHED_FACETS = 100_000
_PAGE = 5_000
_COUNTS = """
    SELECT lexeme, sum(tools) FROM term_counts
    WHERE tenant = %(tenant)s AND owner = %(owner)s AND lexeme = ANY (%(lexemes)s) AND server = ANY (%(servers)s)
    GROUP BY lexeme
    UNION ALL
    SELECT lexeme, tools FROM term_counts
    WHERE tenant = %(tenant)s AND owner = %(owner)s AND lexeme = ANY (%(tiers)s) AND server = ''
"""
_NAMES = """
    SELECT lexeme, sum(tools) FROM term_counts
    WHERE tenant = %(tenant)s AND owner = %(owner)s AND lexeme >= '~' AND lexeme < chr(127)
    AND server = ANY (%(servers)s) GROUP BY lexeme
"""
_NAMED = """
    SELECT owner, key FROM servers
    WHERE tenant = %s AND owner = ANY (%s) AND (key = ANY (%s) OR title = ANY (%s::bytea[]))
"""
_SEARCH_ROWS = """
    SELECT r.owner, r.key, r.server, r.enabled,
        (SELECT t.facets FROM tools t WHERE t.tenant = r.tenant AND t.owner = r.owner AND t.key = r.key),
        r.terms, r.embedding
    FROM search_rows r WHERE r.id = ANY (%s) ORDER BY r.key
"""
_LIST = """
    SELECT r.owner, r.key, r.server, r.enabled, t.facets FROM search_rows r JOIN tools t USING (tenant, owner, key)
    WHERE {where} AND r.key > %(after)s ORDER BY r.key LIMIT %(page)s
"""
_OPEN = """
    SELECT t.owner, t.key, t.server, w.enabled, t.facets, t.definition
    FROM tools t LEFT JOIN switches w USING (tenant, owner, key)
    WHERE t.tenant = %s AND t.owner = ANY (%s) AND t.key = ANY (%s)
"""
_VECTOR = "SELECT owner, embedding FROM search_rows WHERE tenant = %s AND owner = ANY (%s) AND key = %s"


class InDatabaseSearch:
    """The reading methods of the store for a tenant that is searched in the database.

    Each raises NotInDatabaseError when the tenant has become small enough to be searched in memory.
    """

    def __init__(self, pool: ConnectionPool, access: AccessFilter, settings: Settings) -> None:
        self._pool = pool
        self._access = access
        self.exact_rows = min(settings.exact_rows, EXACT_ROWS)
        self._views: LRUCache[Hashable, TenantView] = LRUCache(_CACHE_ENTRIES)
        self._facets: LRUCache[Hashable, list[Facets]] = LRUCache(_CACHED_FACETS, getsizeof=_cache_size)
        self._vocabularies: LRUCache[Hashable, list[str]] = LRUCache(_CACHE_ENTRIES)

    async def overview(self, caller: Caller) -> Overview:
        """Return the totals of what the caller may see."""

        async def read(db: AsyncConnection) -> Overview:
            state, view = await self.view(db, caller)
            return Overview(
                total=view.visible,
                tokens=view.tokens,
                categories=view.categories,
                generation=max(state.generations),
                model_id=state.model_id,
                servers=view.servers,
            )

        return await self._run(caller, read)

    async def candidates(
        self, caller: Caller, narrow: Filter, intents: Sequence[Intent], limit: int, model_id: str
    ) -> Candidates:
        """Return the union of the best by vector and by words, filtered inside the search."""

        async def search(db: AsyncConnection) -> Any:
            state, view = await self.view(db, caller)
            has_vectors = state.model_id == model_id and any(scope.has_vectors for scope in view.scopes)
            usable = usable_intents(intents, {state.dimension} if has_vectors else set())
            names = list(dict.fromkeys(term for intent in usable for term in intent.terms))
            counts = [await self._counts(db, caller, scope, names) for scope in view.scopes]
            frequency = _frequency(caller.tenant, names, counts, view)
            weight = term_weights(frequency, view.visible)
            results = []
            for scope_query, lexemes in zip(await self.scope_queries(db, caller, view, narrow), counts, strict=True):
                ids: set[int] = set()
                for intent in usable if scope_query.max_rows > 0 else ():
                    if intent.vector is not None and scope_query.scope.has_vectors:
                        ids.update(await nearest(db, scope_query, state, intent.vector, limit, self.exact_rows))
                    ids.update(await best_by_words(db, scope_query, caller.tenant, intent, lexemes, weight, limit))
                results.append((scope_query.scope, await _search_rows(db, ids)))
            return state, view, usable, frequency, results

        state, view, usable, frequency, results = await self._run(caller, search)

        def choose() -> Candidates:
            segments = [_segment(caller.tenant, scope, rows, state) for scope, rows in results]
            matching = [self._allowed(caller, segment) & segment.matching(narrow) for segment in segments]
            return collect_candidates(segments, matching, usable, limit, frequency, view.visible)

        return choose() if sum(len(rows) for _, rows in results) <= _INLINE_ROWS else await asyncio.to_thread(choose)

    async def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words in the names of the tools that the caller may see."""

        async def read(db: AsyncConnection) -> list[str]:
            state, view = await self.view(db, caller)
            key = (caller, state.generations)
            if key not in self._vocabularies:
                counts: Counter[str] = Counter()
                for scope in view.scopes:
                    for lexeme, count in await fetch_all(db, _NAMES, _values(caller, scope)):
                        counts[lexeme] += int(count)
                for _, names in view.shadowed:
                    counts.subtract(names.split())
                self._vocabularies[key] = sorted(name[1:] for name, count in counts.items() if count > 0)
            return self._vocabularies[key]

        return await self._run(caller, read)

    async def facets(self, caller: Caller, narrow: Filter) -> Sequence[Facets]:
        """Return the tools that the caller may see and that fit the filter, sorted by key. They are read in pages."""

        async def read(db: AsyncConnection) -> list[Facets]:
            state, view = await self.view(db, caller)
            key = (caller, narrow, state.generations)
            if key not in self._facets:
                facets: list[Facets] = []
                for scope_query in await self.scope_queries(db, caller, view, narrow):
                    facets += await self._pages(db, caller, scope_query) if scope_query.max_rows > 0 else []
                self._facets[key] = sorted(facets, key=lambda item: item.key)
            return self._facets[key]

        return list(await self._run(caller, read))

    async def similar(self, caller: Caller, key: str, limit: int) -> Sequence[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first."""
        tool = (await self.tools(caller, [key])).get(key)
        if tool is None:
            return []

        async def search(db: AsyncConnection) -> Any:
            state, view = await self.view(db, caller)
            owners = [scope.owner for scope in view.scopes]
            halves = dict(await fetch_all(db, _VECTOR, (caller.tenant, owners, key))).get(tool.owner or "")
            if halves is None:
                return state, None, []
            vector, results = from_halves(halves), []
            for scope_query in await self.scope_queries(db, caller, view, Filter()):
                ids = await nearest(db, scope_query, state, vector, limit + 1, self.exact_rows)
                results.append((scope_query.scope, await _search_rows(db, set(ids))))
            return state, vector, results

        state, vector, results = await self._run(caller, search)
        segments = [_segment(caller.tenant, scope, rows, state) for scope, rows in results]
        return nearest_tools(segments, [self._allowed(caller, item) for item in segments], vector, key, limit)

    async def tools(self, caller: Caller, keys: Sequence[str]) -> Mapping[str, Tool]:
        """Return the full definitions of those keys that the caller may see. A user's own tool hides a shared one."""
        owners = ["", caller.user] if caller.user else [""]
        storable_keys = [key for key in keys if storable(key)]

        async def read(db: AsyncConnection) -> list[Any]:
            await read_state(db, caller)
            return await fetch_all(db, _OPEN, (caller.tenant, owners, storable_keys))

        tools: dict[str, Tool] = {}
        for *row, definition in sorted(await self._run(caller, read), key=lambda row: str(row[0])):
            facets = _facets(caller.tenant, *row)
            if self._access(caller, facets):
                tools[facets.key] = read_tool(facets, definition)
        return {key: tools[key] for key in keys if key in tools}

    async def _run(self, caller: Caller, work: Callable[[AsyncConnection], Awaitable[_Result]]) -> _Result:
        return await self._pool.run(work, tenant=caller.tenant, snapshot=True)

    async def view(self, db: AsyncConnection, caller: Caller) -> tuple[TenantState, TenantView]:
        """Return the state of the caller's tenant, and the cached totals of what the caller may see of it."""
        state = await read_state(db, caller)
        key = (caller, state.generations, state.model)
        if key not in self._views:
            self._views[key] = await read_view(db, caller, state)
        return state, self._views[key]

    async def _counts(
        self, db: AsyncConnection, caller: Caller, scope: ScopeView, terms: Sequence[str]
    ) -> dict[str, int]:
        """Count the tools of each lexeme: visible ones for plain words, those of the whole scope for tiers."""
        plain = [term_lexeme(caller.tenant, term) for term in terms]
        tiers = [f"{lexeme}{tier}" for lexeme in plain for tier in range(1, len(TIERS) + 1)]
        values = {**_values(caller, scope), "lexemes": plain, "tiers": tiers}
        return {lexeme: int(count) for lexeme, count in await fetch_all(db, _COUNTS, values)}

    async def scope_queries(
        self, db: AsyncConnection, caller: Caller, view: TenantView, narrow: Filter
    ) -> list[ScopeQuery]:
        """Write the filter as a condition for each scope."""
        named: dict[str, set[str]] = {scope.owner: set() for scope in view.scopes}
        if narrow.servers:
            keys = [name for name in narrow.servers if storable(name)]
            titles = [name.encode("utf-8", "surrogatepass") for name in narrow.servers]
            for owner, key in await fetch_all(db, _NAMED, (caller.tenant, list(named), keys, titles)):
                named[owner].add(key)
        queries = []
        for scope in view.scopes:
            tags = dict.fromkeys((tag.casefold() for tag in narrow.tags), 0)
            if tags:
                lexemes = {label_lexeme(caller.tenant, "#", tag): tag for tag in tags}
                values = {**_values(caller, scope), "lexemes": [], "tiers": list(lexemes)}
                tags |= {lexemes[lexeme]: int(count) for lexeme, count in await fetch_all(db, _COUNTS, values)}
            queries.append(filter_scope(view, scope, caller, narrow, frozenset(named[scope.owner]), tags))
        return queries

    async def _pages(self, db: AsyncConnection, caller: Caller, scope_query: ScopeQuery) -> list[Facets]:
        visible: list[Facets] = []
        after = ""
        while True:
            values = {**scope_query.values, "after": after, "page": _PAGE}
            page = await fetch_all(db, _LIST.format(where=scope_query.where), values)
            facets = [_facets(caller.tenant, *row) for row in page]
            visible += [item for item in facets if self._access(caller, item)]
            if len(page) < _PAGE:
                return visible
            after = facets[-1].key

    def _allowed(self, caller: Caller, segment: Segment) -> BoolArray:
        return np.fromiter((self._access(caller, item) for item in segment.facets), np.bool_, len(segment))


def _cache_size(facets: Sequence[Facets]) -> int:
    """Count a short list as its share of the entries, and one that is too long alone as the whole cache."""
    return min(max(len(facets), _CACHED_FACETS // _CACHE_ENTRIES), _CACHED_FACETS)


def _values(caller: Caller, scope: ScopeView) -> dict[str, Any]:
    servers = [""] if scope.servers is None else sorted(scope.servers)
    return {"tenant": caller.tenant, "owner": scope.owner, "servers": servers}


def _frequency(
    tenant: str, names: Sequence[str], counts: Sequence[Mapping[str, int]], view: TenantView
) -> dict[str, int]:
    """Count the visible tools that contain each term."""
    frequency = {term: sum(lexemes.get(term_lexeme(tenant, term), 0) for lexemes in counts) for term in names}
    if view.shadowed:
        hidden = np.concatenate([np.frombuffer(terms, dtype=PACKED)["term"] for terms, _ in view.shadowed])
        frequency = {term: count - int((hidden == np.uint64(term_id(term))).sum()) for term, count in frequency.items()}
    return frequency


async def _search_rows(db: AsyncConnection, ids: set[int]) -> list[Any]:
    return await fetch_all(db, _SEARCH_ROWS, (sorted(ids),)) if ids else []


def _facets(tenant: str, owner: str, key: str, server: str, enabled: bool | None, text: bytes) -> Facets:
    return read_facets(tenant, key, owner, server, enabled, text.decode("utf-8", "surrogatepass"))


def _segment(tenant: str, scope: ScopeView, rows: Sequence[Any], state: TenantState) -> Segment:
    """Build a segment of candidate rows, which are sorted by key."""
    matrix = np.zeros((len(rows), state.dimension if scope.has_vectors else 0), dtype=np.float32)
    for number, row in enumerate(rows):
        if row[6] is not None:
            matrix[number] = from_halves(row[6])
    return Segment(
        scope=Scope(tenant=tenant, owner=scope.owner or None),
        generation=max(state.generations),
        model_id=state.model_id,
        facets=[_facets(tenant, *row[:5]) for row in rows],
        definitions=[b""] * len(rows),
        words=InvertedIndex.from_packed([row[5] for row in rows]),
        vectors=VectorIndex(matrix, exact_rows=len(rows)),
    )
