"""Reading a tenant that is too large for memory: filtered, counted and searched in the database.

The database returns a pool of rows that holds the best; which of them are the best, and the evidence for each, is then
decided by the same code as in memory, and the one predicate is asked again for every row that leaves here.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from psycopg import AsyncConnection

from toolscout.errors import DimensionError
from toolscout.models import Caller, Candidates, Facets, Filter, Intent, Overview, Scope, Tool
from toolscout.ports import Predicate
from toolscout.settings import Settings
from toolscout.storage.index.postings import PACKED, InvertedIndex, term_id
from toolscout.storage.index.segment import Segment
from toolscout.storage.index.snapshot import gather
from toolscout.storage.index.vectors import VectorIndex
from toolscout.storage.postgres.candidates import best_by_words, nearest
from toolscout.storage.postgres.encoding import TIERS, from_halves, label_lexeme, storable, term_lexeme
from toolscout.storage.postgres.pool import ConnectionPool, fetch_all
from toolscout.storage.postgres.tenant_view import (
    NotInDatabaseError,
    ScopeQuery,
    TenantState,
    TenantView,
    VisibleScope,
    narrow_part,
    read_state,
    read_view,
)
from toolscout.storage.tool_json import read_facets, read_tool

if TYPE_CHECKING:
    from toolscout.models import BoolArray

_Result = TypeVar("_Result")
__all__ = ["InDatabaseSearch", "NotInDatabaseError", "without_vectors"]

EXACT_ROWS = 20_000
"""Up to this many visible rows every vector is looked at, which measured faster and better than the graph."""

_INLINE_ROWS = 2_000
_REMEMBERED = 256
_REMEMBERED_FACETS = 100_000
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
_POOL = """
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


def without_vectors(intents: Sequence[Intent]) -> list[Intent]:
    """Return the needs to be looked for by words alone."""
    return [replace(intent, vector=None) for intent in intents]


class InDatabaseSearch:
    """The reading methods of the store for a tenant that is searched in the database.

    Each raises NotInDatabaseError when the tenant has become small enough to be searched in memory.
    """

    def __init__(self, pool: ConnectionPool, predicate: Predicate, settings: Settings) -> None:
        """Remember how to get there."""
        self._pool = pool
        self._predicate = predicate
        self.exact_rows = min(settings.exact_rows, EXACT_ROWS)
        self._views: OrderedDict[Any, TenantView] = OrderedDict()
        self._listed: OrderedDict[Any, list[Facets]] = OrderedDict()
        self._vocabularies: OrderedDict[Any, list[str]] = OrderedDict()

    async def overview(self, caller: Caller) -> Overview:
        """Return what the caller can see in sum."""

        async def read(db: AsyncConnection) -> Overview:
            state, view = await self._view(db, caller)
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
            state, view = await self._view(db, caller)
            needs = self._usable(intents if state.model_id == model_id else without_vectors(intents), state, view)
            names = list(dict.fromkeys(term for intent in needs for term in intent.terms))
            counts = [await self._counts(db, caller, part, names) for part in view.parts]
            frequency = _frequency(caller.tenant, names, counts, view)
            weight = {
                term: float(np.log1p((view.visible - held + 0.5) / (held + 0.5))) for term, held in frequency.items()
            }
            pools = []
            for narrowed, held in zip(await self._narrowed(db, caller, view, narrow), counts, strict=True):
                ids: set[int] = set()
                for intent in needs if narrowed.most > 0 else ():
                    if intent.vector is not None and narrowed.part.has_vectors:
                        ids.update(await nearest(db, narrowed, state, intent.vector, limit, self.exact_rows))
                    ids.update(await best_by_words(db, narrowed, caller.tenant, intent, held, weight, limit))
                pools.append((narrowed.part, await _pool(db, ids)))
            return state, view, needs, frequency, pools

        state, view, needs, frequency, pools = await self._run(caller, search)

        def choose() -> Candidates:
            segments = [_segment(caller.tenant, part, found, state) for part, found in pools]
            wanted = [self._allowed(caller, segment) & segment.matching(narrow) for segment in segments]
            return gather(segments, wanted, needs, limit, frequency, view.visible)

        return choose() if sum(len(found) for _, found in pools) <= _INLINE_ROWS else await asyncio.to_thread(choose)

    async def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words of the names that the caller may see."""

        async def read(db: AsyncConnection) -> list[str]:
            state, view = await self._view(db, caller)
            key = (caller, state.generations)
            if key not in self._vocabularies:
                held: dict[str, int] = {}
                for part in view.parts:
                    for lexeme, count in await fetch_all(db, _NAMES, _values(caller, part)):
                        held[lexeme] = held.get(lexeme, 0) + int(count)
                for _, names in view.shadowed:
                    for name in names.split():
                        held[name] -= 1
                _remember(self._vocabularies, key, sorted(name[1:] for name, count in held.items() if count > 0))
            return self._vocabularies[key]

        return await self._run(caller, read)

    async def facets(self, caller: Caller, narrow: Filter) -> Sequence[Facets]:
        """Return what the caller may see, in the order of keys, read page by page."""

        async def read(db: AsyncConnection) -> list[Facets]:
            state, view = await self._view(db, caller)
            key = (caller, narrow, state.generations)
            if key not in self._listed:
                found: list[Facets] = []
                for narrowed in await self._narrowed(db, caller, view, narrow):
                    found += await self._pages(db, caller, narrowed) if narrowed.most > 0 else []
                found.sort(key=lambda item: item.key)
                _remember(self._listed, key, found)
                while sum(map(len, self._listed.values())) > _REMEMBERED_FACETS and len(self._listed) > 1:
                    self._listed.popitem(last=False)
            return self._listed[key]

        return list(await self._run(caller, read))

    async def similar(self, caller: Caller, key: str, limit: int) -> Sequence[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first."""
        home = (await self.tools(caller, [key])).get(key)
        if home is None:
            return []

        async def search(db: AsyncConnection) -> Any:
            state, view = await self._view(db, caller)
            owners = [part.owner for part in view.parts]
            found = await fetch_all(db, _VECTOR, (caller.tenant, owners, key))
            sent = dict(found).get(home.owner or "")
            if sent is None:
                return state, None, []
            query, pools = from_halves(sent), []
            for narrowed in await self._narrowed(db, caller, view, Filter()):
                ids = await nearest(db, narrowed, state, query, limit + 1, self.exact_rows)
                pools.append((narrowed.part, await _pool(db, set(ids))))
            return state, query, pools

        state, query, pools = await self._run(caller, search)
        near: list[tuple[Facets, float]] = []
        for part, found in pools if query is not None else ():
            segment = _segment(caller.tenant, part, found, state)
            if segment.vectors.matrix.shape[1] != len(query):
                continue
            allowed = self._allowed(caller, segment)
            best = segment.vectors.best_rows(query, allowed, int(allowed.sum()), limit + 1)
            cosine = segment.vectors.cosine(query[None], best)[0].tolist()
            near += [(segment.facets[at], score) for at, score in zip(best.tolist(), cosine, strict=True)]
        near.sort(key=lambda item: (-item[1], item[0].key))
        return [item for item in near if item[0].key != key][:limit]

    async def tools(self, caller: Caller, keys: Sequence[str]) -> Mapping[str, Tool]:
        """Return the full definitions of those keys that the caller may see: their own before everyone's."""
        owners = ["", caller.user] if caller.user else [""]
        wanted = [key for key in keys if storable(key)]

        async def read(db: AsyncConnection) -> list[Any]:
            await read_state(db, caller)
            return await fetch_all(db, _OPEN, (caller.tenant, owners, wanted))

        seen: dict[str, Tool] = {}
        for *row, definition in sorted(await self._run(caller, read), key=lambda row: str(row[0])):
            facets = _facets(caller.tenant, *row)
            if self._predicate(caller, facets):
                seen[facets.key] = read_tool(facets, definition)
        return {key: seen[key] for key in keys if key in seen}

    async def _run(self, caller: Caller, work: Callable[[AsyncConnection], Awaitable[_Result]]) -> _Result:
        return await self._pool.run(work, tenant=caller.tenant, snapshot=True)

    async def _view(self, db: AsyncConnection, caller: Caller) -> tuple[TenantState, TenantView]:
        state = await read_state(db, caller)
        key = (caller, state.generations, state.model)
        if key not in self._views:
            _remember(self._views, key, await read_view(db, caller, state))
        return state, self._views[key]

    async def _counts(
        self, db: AsyncConnection, caller: Caller, part: VisibleScope, terms: Sequence[str]
    ) -> dict[str, int]:
        """Count the tools of each lexeme: plain words of what is in reach, weightier tiers of the whole scope."""
        plain = [term_lexeme(caller.tenant, term) for term in terms]
        tiers = [f"{lexeme}{tier}" for lexeme in plain for tier in range(1, len(TIERS) + 1)]
        values = {**_values(caller, part), "lexemes": plain, "tiers": tiers}
        return {lexeme: int(count) for lexeme, count in await fetch_all(db, _COUNTS, values)}

    async def _narrowed(
        self, db: AsyncConnection, caller: Caller, view: TenantView, narrow: Filter
    ) -> list[ScopeQuery]:
        """Write the filter as a condition for each part."""
        named: dict[str, set[str]] = {part.owner: set() for part in view.parts}
        if narrow.servers:
            keys = [name for name in narrow.servers if storable(name)]
            titles = [name.encode("utf-8", "surrogatepass") for name in narrow.servers]
            for owner, key in await fetch_all(db, _NAMED, (caller.tenant, list(named), keys, titles)):
                named[owner].add(key)
        result = []
        for part in view.parts:
            tags = dict.fromkeys((tag.casefold() for tag in narrow.tags), 0)
            if tags:
                lexemes = {label_lexeme(caller.tenant, "#", tag): tag for tag in tags}
                found = await fetch_all(db, _COUNTS, {**_values(caller, part), "lexemes": [], "tiers": list(lexemes)})
                tags |= {lexemes[lexeme]: int(count) for lexeme, count in found}
            result.append(narrow_part(view, part, caller, narrow, frozenset(named[part.owner]), tags))
        return result

    async def _pages(self, db: AsyncConnection, caller: Caller, narrowed: ScopeQuery) -> list[Facets]:
        found: list[Facets] = []
        after = ""
        while True:
            values = {**narrowed.values, "after": after, "page": _PAGE}
            page = await fetch_all(db, _LIST.format(where=narrowed.where), values)
            shown = [_facets(caller.tenant, *row) for row in page]
            found += [item for item in shown if self._predicate(caller, item)]
            if len(page) < _PAGE:
                return found
            after = shown[-1].key

    def _allowed(self, caller: Caller, segment: Segment) -> BoolArray:
        return np.fromiter((self._predicate(caller, item) for item in segment.facets), np.bool_, len(segment))

    def _usable(self, intents: Sequence[Intent], state: TenantState, view: TenantView) -> list[Intent]:
        """Drop the vectors where no tool has one; refuse those of another length."""
        if not any(part.has_vectors for part in view.parts):
            return without_vectors(intents)
        for intent in intents:
            if intent.vector is not None and len(intent.vector) != state.dimension:
                raise DimensionError.two_models(
                    f"the catalogue holds vectors of {state.dimension} numbers, the query has {len(intent.vector)}"
                )
        return list(intents)


def _values(caller: Caller, part: VisibleScope) -> dict[str, Any]:
    servers = [""] if part.servers is None else sorted(part.servers)
    return {"tenant": caller.tenant, "owner": part.owner, "servers": servers}


def _frequency(
    tenant: str, names: Sequence[str], counts: Sequence[Mapping[str, int]], view: TenantView
) -> dict[str, int]:
    """Count the visible tools that hold each term."""
    held = {term: sum(part.get(term_lexeme(tenant, term), 0) for part in counts) for term in names}
    if view.shadowed:
        hidden = np.concatenate([np.frombuffer(terms, dtype=PACKED)["term"] for terms, _ in view.shadowed])
        held = {term: count - int((hidden == np.uint64(term_id(term))).sum()) for term, count in held.items()}
    return held


async def _pool(db: AsyncConnection, ids: set[int]) -> list[Any]:
    return await fetch_all(db, _POOL, (sorted(ids),)) if ids else []


def _facets(tenant: str, owner: str, key: str, server: str, enabled: bool | None, text: bytes) -> Facets:
    return read_facets(tenant, key, owner, server, enabled, text.decode("utf-8", "surrogatepass"))


def _segment(tenant: str, part: VisibleScope, found: Sequence[Any], state: TenantState) -> Segment:
    """Make a segment of a pool of rows, which are in the order of keys."""
    matrix = np.zeros((len(found), state.dimension if part.has_vectors else 0), dtype=np.float32)
    for row, item in enumerate(found):
        if item[6] is not None:
            matrix[row] = from_halves(item[6])
    return Segment(
        scope=Scope(tenant=tenant, owner=part.owner or None),
        generation=max(state.generations),
        model_id=state.model_id,
        facets=[_facets(tenant, *item[:5]) for item in found],
        definitions=[b""] * len(found),
        words=InvertedIndex([item[5] for item in found]),
        vectors=VectorIndex(matrix, exact_rows=len(found)),
    )


def _remember(known: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    known[key] = value
    while len(known) > _REMEMBERED:
        known.popitem(last=False)
