"""The two arms of a search in the database: nearest by vector, best by words; both return ids of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg import AsyncConnection, sql

from toolscout.models import Intent
from toolscout.storage.index.postings import PACKED, Postings, best_rows, term_id
from toolscout.storage.postgres.encoding import TIERS, any_of, from_halves, term_lexeme, written
from toolscout.storage.postgres.pool import fetch_all
from toolscout.storage.postgres.tenant_view import ScopeQuery, TenantState

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_BUDGETS, _SHARE = (2_000, 4_000), 50
"""How many rows the arm of words reads: the rarest words first, common ones where they weigh most; more of more."""

_WIDTHS, _WIDEST, _FOR_EACH = (100, 400), 1_000, 1_000
"""How many rows a search of the graph keeps in view: one for a thousand tools, as a large graph is sooner lost in."""

_MARGIN = 100
_ROUNDING = 6e-4
"""How much rounding a unit vector to half precision can change its product with another."""

_TIES = 256
_ALL = "SELECT r.id FROM search_rows r WHERE {where}"
_EXACT = """
    SELECT r.id, coalesce(r.embedding <#> %(q)s::halfvec, 0) AS far, r.embedding FROM search_rows r WHERE {where}
    ORDER BY 2, r.key LIMIT %(limit)s
"""
_EXACTER = """
    SELECT r.id FROM search_rows r WHERE {where}
    ORDER BY coalesce(r.embedding::vector <#> %(q)s::vector, 0), r.key LIMIT %(limit)s
"""
_GRAPH = """
    SELECT r.id FROM search_rows r WHERE {where} AND r.model = {model}
    ORDER BY r.embedding::halfvec({dimension}) <=> %(q)s::halfvec({dimension}) LIMIT %(limit)s
"""
_WORDS = """
    SELECT id, terms FROM found_by_words(%(query)s::tsquery, %(owner)s, %(servers)s::text[], %(hidden_by)s)
    ORDER BY key LIMIT %(budget)s
"""
_WIDEN = "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', %s, true)"


async def nearest(
    db: AsyncConnection, narrowed: ScopeQuery, state: TenantState, query: FloatArray, limit: int, exact_rows: int
) -> list[int]:
    """Return the rows nearest to a vector, exactly up to `exact_rows`, beyond by the graph where there is one."""
    if narrowed.most <= limit:
        return [row[0] for row in await _rows(db, _ALL, narrowed, {})]
    if narrowed.most > exact_rows and state.graph:
        found = await _by_graph(db, narrowed, state, query, limit)
        if len(found) == limit:  # a graph may lose its way between the few rows that a filter leaves
            return found
    return await _exactly(db, narrowed, query, limit)


async def _by_graph(
    db: AsyncConnection, narrowed: ScopeQuery, state: TenantState, query: FloatArray, limit: int
) -> list[int]:
    least, most = _WIDTHS
    width = max(limit, least, min(most, narrowed.part.total // _FOR_EACH))
    await db.execute(_WIDEN, (str(min(_WIDEST, width)),))
    asked = sql.SQL(_GRAPH).format(
        where=sql.SQL(narrowed.where), model=sql.Literal(state.model), dimension=sql.Literal(state.dimension)
    )
    found = await db.execute(asked, {**narrowed.values, "q": written(query), "limit": limit})
    return [row[0] for row in await found.fetchall()]


async def _exactly(db: AsyncConnection, narrowed: ScopeQuery, query: FloatArray, limit: int) -> list[int]:
    """Look at every row: in half precision first, and again in single where that cannot tell which are nearest."""
    most = 2 * limit + _MARGIN
    found = await _rows(db, _EXACT, narrowed, {"q": written(query), "limit": most})
    if len(found) < most:
        return [row[0] for row in found]
    scores = [0.0 if row[2] is None else float(np.vecdot(from_halves(row[2]), query)) for row in found]
    if sorted(scores)[-limit] > _ROUNDING - found[-1][1]:
        return [row[0] for row in found]
    again = await _rows(db, _EXACTER, narrowed, {"q": written(query), "limit": most + _TIES})
    return [row[0] for row in again]


async def best_by_words(
    db: AsyncConnection,
    narrowed: ScopeQuery,
    tenant: str,
    intent: Intent,
    counts: Mapping[str, int],
    weight: Mapping[str, float],
    limit: int,
) -> list[int]:
    """Return the rows with the highest sum of weight x impact; `counts` are of lexemes in this part."""
    query = _word_query(tenant, intent.terms, counts, narrowed)
    if not query:
        return []
    found = await fetch_all(db, _WORDS, {**narrowed.values, "query": query, "budget": max(_budget(narrowed), limit)})
    blobs = [row[1] for row in found]
    packed = np.frombuffer(b"".join(blobs), dtype=PACKED)
    rows = np.repeat(np.arange(len(blobs), dtype=np.int32), [len(blob) // PACKED.itemsize for blob in blobs])
    terms = np.ascontiguousarray(packed["term"])
    weighted = []
    for term in intent.terms:
        here = np.flatnonzero(terms == np.uint64(term_id(term)))
        if len(here):
            impact = packed["impact"][here].astype(np.float32)
            weighted.append((Postings(rows=rows[here], impact=impact, fields=packed["fields"][here]), weight[term]))
    best = best_rows(weighted, np.ones(len(blobs), dtype=np.bool_), len(blobs), limit)
    return [found[row][0] for row in best.tolist()]


def _word_query(tenant: str, terms: Sequence[str], counts: Mapping[str, int], narrowed: ScopeQuery) -> str:
    """Choose lexemes, from the rarest word up, each as complete as still fits into what may be read."""
    plain = {term: term_lexeme(tenant, term) for term in terms}
    present = sorted((term for term in terms if counts.get(plain[term], 0) > 0), key=lambda term: counts[plain[term]])
    if not present:
        return ""
    left = _budget(narrowed)
    if narrowed.most <= left and (narrowed.labels or narrowed.part.total <= left):
        chosen = [plain[term] for term in present]
    else:
        chosen = []
        for term in present:
            for tier in range(len(TIERS) + 1):
                lexeme = term_lexeme(tenant, term, tier)
                if 0 < counts.get(lexeme, 0) <= left:
                    chosen.append(lexeme)
                    left -= counts[lexeme]
                    break
        if not chosen:
            tiers = [term_lexeme(tenant, present[0], tier) for tier in range(len(TIERS) + 1)]
            chosen = [[lexeme for lexeme in tiers if counts.get(lexeme, 0) > 0][-1]]
    return any_of(chosen) + (f" & {narrowed.labels}" if narrowed.labels else "")


def _budget(narrowed: ScopeQuery) -> int:
    least, most = _BUDGETS
    return max(least, min(most, narrowed.part.total // _SHARE))


async def _rows(db: AsyncConnection, query: str, narrowed: ScopeQuery, values: dict[str, Any]) -> list[Any]:
    by_words = "r.id = ANY (ARRAY(SELECT holding(%(narrow)s::tsquery, %(owner)s))) AND "
    asked = query.format(where=(by_words if narrowed.selective else "") + narrowed.where)
    given = {**narrowed.values, "narrow": narrowed.labels, **values}
    return await fetch_all(db, asked, given)
