"""Candidate rows of a search in the database: the nearest by vector and the best by words, as ids of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg import AsyncConnection, sql

from toolscout.models import Intent
from toolscout.storage.index.postings import PACKED, Postings, best_rows, term_id
from toolscout.storage.postgres.encoding import TIERS, any_of, from_halves, term_lexeme, vector_literal
from toolscout.storage.postgres.pool import fetch_all
from toolscout.storage.postgres.tenant_view import ScopeQuery, TenantState

if TYPE_CHECKING:
    from toolscout.models import FloatArray

_MIN_WORD_ROWS, _MAX_WORD_ROWS, _WORD_ROWS_SHARE = 2_000, 4_000, 50
"""How many rows a search by words reads: one fiftieth of the tools, between these limits.

Rare words are read first and whole. Of a common word only the tools with a high impact are read.
"""

_MIN_WIDTH, _MAX_WIDTH, _TOOLS_PER_WIDTH = 100, 400, 1_000
"""The `ef_search` of a graph search: one for each thousand tools, as a search of a larger graph misses more."""

_WIDEST = 1_000
"""The largest `ef_search` that pgvector accepts."""

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
GRAPH_QUERY = """
    SELECT r.id FROM search_rows r WHERE {where} AND r.model = {model}
    ORDER BY r.embedding::halfvec({dimension}) <=> %(q)s::halfvec({dimension}) LIMIT %(limit)s
"""
_WORDS = """
    SELECT id, terms FROM found_by_words(%(query)s::tsquery, %(owner)s, %(servers)s::text[], %(hidden_by)s)
    ORDER BY key LIMIT %(budget)s
"""
_WIDEN = "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', %s, true)"


async def nearest(
    db: AsyncConnection, scope_query: ScopeQuery, state: TenantState, vector: FloatArray, limit: int, exact_rows: int
) -> list[int]:
    """Return the rows nearest to a vector: exactly up to `exact_rows` rows, beyond that by the graph if it exists."""
    if scope_query.max_rows <= limit:
        return [row[0] for row in await _fetch(db, _ALL, scope_query, {})]
    if scope_query.max_rows > exact_rows and state.has_graph:
        ids = await search_graph(db, scope_query, state, vector, limit)
        if len(ids) == limit:  # with a strict filter, a graph search may end before it has found enough rows
            return ids
    return await _search_exactly(db, scope_query, vector, limit)


async def search_graph(
    db: AsyncConnection, scope_query: ScopeQuery, state: TenantState, vector: FloatArray, limit: int
) -> list[int]:
    """Return the rows nearest to a vector by the HNSW graph: perhaps not the very nearest, perhaps fewer than asked."""
    width = max(limit, _MIN_WIDTH, min(_MAX_WIDTH, scope_query.scope.total // _TOOLS_PER_WIDTH))
    await db.execute(_WIDEN, (str(min(_WIDEST, width)),))
    statement = sql.SQL(GRAPH_QUERY).format(
        where=sql.SQL(scope_query.where), model=sql.Literal(state.model), dimension=sql.Literal(state.dimension)
    )
    cursor = await db.execute(statement, {**scope_query.values, "q": vector_literal(vector), "limit": limit})
    return [row[0] for row in await cursor.fetchall()]


async def _search_exactly(db: AsyncConnection, scope_query: ScopeQuery, vector: FloatArray, limit: int) -> list[int]:
    """Compare every row in half precision, and again in single precision where rounding may change the result."""
    count = 2 * limit + _MARGIN
    rows = await _fetch(db, _EXACT, scope_query, {"q": vector_literal(vector), "limit": count})
    if len(rows) < count:
        return [row[0] for row in rows]
    scores = [0.0 if row[2] is None else float(np.vecdot(from_halves(row[2]), vector)) for row in rows]
    if sorted(scores)[-limit] > _ROUNDING - rows[-1][1]:
        return [row[0] for row in rows]
    rows = await _fetch(db, _EXACTER, scope_query, {"q": vector_literal(vector), "limit": count + _TIES})
    return [row[0] for row in rows]


async def best_by_words(
    db: AsyncConnection,
    scope_query: ScopeQuery,
    tenant: str,
    intent: Intent,
    counts: Mapping[str, int],
    weight: Mapping[str, float],
    limit: int,
) -> list[int]:
    """Return the rows with the highest sum of weight x impact. `counts` are the tools of each lexeme in this scope."""
    query = _word_query(tenant, intent.terms, counts, scope_query)
    if not query:
        return []
    values = {**scope_query.values, "query": query, "budget": max(_budget(scope_query), limit)}
    ids_and_terms = await fetch_all(db, _WORDS, values)
    blobs = [blob for _, blob in ids_and_terms]
    packed = np.frombuffer(b"".join(blobs), dtype=PACKED)
    rows = np.repeat(np.arange(len(blobs), dtype=np.int32), [len(blob) // PACKED.itemsize for blob in blobs])
    terms = np.ascontiguousarray(packed["term"])
    weighted = []
    for term in intent.terms:
        places = np.flatnonzero(terms == np.uint64(term_id(term)))
        if len(places):
            impact = packed["impact"][places].astype(np.float32)
            weighted.append((Postings(rows=rows[places], impact=impact, fields=packed["fields"][places]), weight[term]))
    best = best_rows(weighted, np.ones(len(blobs), dtype=np.bool_), len(blobs), limit)
    return [ids_and_terms[row][0] for row in best.tolist()]


def _word_query(tenant: str, terms: Sequence[str], counts: Mapping[str, int], scope_query: ScopeQuery) -> str:
    """Choose lexemes, from the rarest word up: of each word the tier with most tools that still fits the budget."""
    plain = {term: term_lexeme(tenant, term) for term in terms}
    present = sorted((term for term in terms if counts.get(plain[term], 0) > 0), key=lambda term: counts[plain[term]])
    if not present:
        return ""
    budget = _budget(scope_query)
    if scope_query.max_rows <= budget and (scope_query.labels or scope_query.scope.total <= budget):
        chosen = [plain[term] for term in present]
    else:
        chosen = []
        for term in present:
            for tier in range(len(TIERS) + 1):
                lexeme = term_lexeme(tenant, term, tier)
                if 0 < counts.get(lexeme, 0) <= budget:
                    chosen.append(lexeme)
                    budget -= counts[lexeme]
                    break
        if not chosen:
            tiers = [term_lexeme(tenant, present[0], tier) for tier in range(len(TIERS) + 1)]
            chosen = [[lexeme for lexeme in tiers if counts.get(lexeme, 0) > 0][-1]]
    return any_of(chosen) + (f" & {scope_query.labels}" if scope_query.labels else "")


def _budget(scope_query: ScopeQuery) -> int:
    return max(_MIN_WORD_ROWS, min(_MAX_WORD_ROWS, scope_query.scope.total // _WORD_ROWS_SHARE))


async def _fetch(db: AsyncConnection, query: str, scope_query: ScopeQuery, values: dict[str, Any]) -> list[Any]:
    by_labels = "r.id = ANY (ARRAY(SELECT holding(%(narrow)s::tsquery, %(owner)s))) AND "
    statement = query.format(where=(by_labels if scope_query.selective else "") + scope_query.where)
    return await fetch_all(db, statement, {**scope_query.values, "narrow": scope_query.labels, **values})
