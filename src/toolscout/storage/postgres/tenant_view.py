"""What one caller may see of a tenant that is searched in the database, and filters as SQL conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from toolscout.models import Caller, Filter
from toolscout.storage.postgres.encoding import any_of, label_lexeme, name_id
from toolscout.storage.postgres.pool import fetch_all, fetch_one

_STATE = """
    SELECT coalesce(t.in_database, false), c.model_id, coalesce(m.model, 0), coalesce(m.dimension, 0),
        coalesce(i.indisvalid, false), coalesce(s.generation, 0), coalesce(o.generation, 0), coalesce(o.tools, 0)
    FROM catalogue c LEFT JOIN models m USING (model_id)
    LEFT JOIN pg_index i ON i.indexrelid = to_regclass(format('search_rows_hnsw_%%s_%%s', m.model, m.dimension))
    LEFT JOIN tenants t ON t.tenant = %(tenant)s
    LEFT JOIN scopes s ON s.tenant = %(tenant)s AND s.owner = ''
    LEFT JOIN scopes o ON o.tenant = %(tenant)s AND o.owner = %(user)s AND o.owner <> ''
"""
_SUMMARY = "SELECT server, category, tools, tokens FROM summaries WHERE tenant = %s AND owner = %s AND tools > 0"
_WITH_VECTORS = "SELECT EXISTS (SELECT 1 FROM search_rows WHERE tenant = %s AND owner = %s AND embedding IS NOT NULL)"
_SHADOWED = """
    SELECT r.server, r.category, r.tokens, r.terms, r.names
    FROM search_rows o JOIN search_rows r ON r.tenant = o.tenant AND r.owner = '' AND r.key = o.key AND r.enabled
    WHERE o.tenant = %s AND o.owner = %s AND o.enabled
"""
_NOT_SHADOWED = """ AND NOT EXISTS (SELECT 1 FROM search_rows o
    WHERE o.tenant = r.tenant AND o.owner = %(user)s AND o.key = r.key AND o.enabled)"""
_MAX_LABELLED_SERVERS = 64


class NotInDatabaseError(Exception):
    """The tenant is searched in memory now, no longer in the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantState:
    """The state of a tenant in one transaction."""

    model_id: str
    model: int
    dimension: int
    has_graph: bool
    generations: tuple[int, int]
    personal_tools: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeView:
    """What a caller may see of one scope. `servers` are those that the caller is limited to (None for all)."""

    owner: str
    servers: frozenset[str] | None
    counts: Mapping[tuple[str, str], int]
    total: int
    has_vectors: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TenantView:
    """The totals of what a caller may see. `shadowed` are terms and names of the shared tools that the user's hide."""

    scopes: tuple[ScopeView, ...]
    visible: int
    tokens: int
    categories: tuple[str, ...]
    servers: tuple[str, ...]
    shadowed: tuple[tuple[bytes, str], ...]


async def read_state(db: AsyncConnection, caller: Caller) -> TenantState:
    """Read the state of the caller's tenant."""
    names = {"tenant": caller.tenant, "user": caller.user or ""}
    in_database, model_id, model, dimension, has_graph, shared, personal, personal_tools = await fetch_one(
        db, _STATE, names
    )
    if not in_database:
        raise NotInDatabaseError
    return TenantState(
        model_id=model_id,
        model=model,
        dimension=dimension,
        has_graph=has_graph,
        generations=(shared, personal),
        personal_tools=personal_tools,
    )


async def read_view(db: AsyncConnection, caller: Caller, state: TenantState) -> TenantView:
    """Count what the caller may see."""
    owners = ["", caller.user] if caller.user and state.personal_tools else [""]
    scopes: list[ScopeView] = []
    sums: Counter[tuple[str, str]] = Counter()
    tokens = 0
    for owner in owners:
        rows = [
            (server, category.decode("utf-8", "surrogatepass"), tools, size)
            for server, category, tools, size in await fetch_all(db, _SUMMARY, (caller.tenant, owner))
        ]
        servers = None if owner else caller.servers
        if servers is not None and servers.issuperset(row[0] for row in rows):
            servers = None
        if servers is not None:
            rows = [row for row in rows if row[0] in servers]
        counts = {(server, category): tools for server, category, tools, _ in rows}
        tokens += sum(size for *_, size in rows)
        sums.update(counts)
        (has_vectors,) = await fetch_one(db, _WITH_VECTORS, (caller.tenant, owner))
        scopes.append(
            ScopeView(owner=owner, servers=servers, counts=counts, total=sum(counts.values()), has_vectors=has_vectors)
        )
    shadowed = []
    if len(scopes) > 1:
        for server, category, size, terms, names in await fetch_all(db, _SHADOWED, (caller.tenant, caller.user)):
            if scopes[0].servers is None or server in scopes[0].servers:
                sums[server, category.decode("utf-8", "surrogatepass")] -= 1
                tokens -= size
                shadowed.append((terms, names))
    visible = [pair for pair, count in sums.items() if count > 0]
    return TenantView(
        scopes=tuple(scopes),
        visible=sum(sums.values()),
        tokens=tokens,
        categories=tuple(sorted({category for _, category in visible})),
        servers=tuple(sorted({server for server, _ in visible})),
        shadowed=tuple(shadowed),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeQuery:
    """A filter on one scope as an SQL condition on search rows `r`."""

    scope: ScopeView
    where: str
    values: dict[str, Any]
    """The parameters of the condition."""
    max_rows: int
    """The most rows that can fit it."""
    labels: str
    """The same filter as a tsquery on the word index."""
    selective: bool
    """Whether few enough rows fit that the word index is the faster way to them."""


def filter_scope(
    view: TenantView, scope: ScopeView, caller: Caller, narrow: Filter, named: frozenset[str], tags: Mapping[str, int]
) -> ScopeQuery:
    """Write a filter as a condition. `named` are the servers that it names, `tags` its tags with their counts."""
    where = "r.tenant = %(tenant)s AND r.owner = %(owner)s AND r.enabled"
    values: dict[str, Any] = {"tenant": caller.tenant, "owner": scope.owner, "user": caller.user}
    values |= {"servers": None, "hidden_by": None}
    servers = scope.servers
    if narrow.servers:
        servers = named if servers is None else servers & named
    queries: list[str] = []
    if servers is not None:
        where += " AND r.server = ANY (%(servers)s)"
        values["servers"] = sorted(servers)
        if narrow.servers and 0 < len(servers) <= _MAX_LABELLED_SERVERS:
            queries.append(any_of([label_lexeme(caller.tenant, "@", server) for server in sorted(servers)]))
    if narrow.category is not None:
        where += " AND r.category_id = %(category)s"
        values["category"] = name_id(narrow.category)
        queries.append(any_of([label_lexeme(caller.tenant, "=", narrow.category)]))
    if tags:
        where += f" AND r.tags {'@>' if narrow.match == 'all' else '&&'} %(tags)s::bigint[]"
        values["tags"] = [name_id(tag) for tag in tags]
        each = [any_of([label_lexeme(caller.tenant, "#", tag)]) for tag in tags]
        queries.append("(" + (" & " if narrow.match == "all" else " | ").join(each) + ")")
    if len(view.scopes) > 1 and not scope.owner:
        where += _NOT_SHADOWED
        values["hidden_by"] = caller.user
    max_rows = _max_rows(scope, servers, narrow.category)
    if tags:
        max_rows = min(max_rows, (min if narrow.match == "all" else sum)(tags.values()))
    return ScopeQuery(
        scope=scope,
        where=where,
        values=values,
        max_rows=max_rows,
        labels=" & ".join(queries),
        selective=bool(queries) and max_rows * 4 < scope.total,
    )


def _max_rows(scope: ScopeView, servers: frozenset[str] | None, category: str | None) -> int:
    if servers is scope.servers and category is None:
        return scope.total
    return sum(
        count
        for (server, name), count in scope.counts.items()
        if (servers is None or server in servers) and (category is None or name.casefold() == category.casefold())
    )
