"""What one caller sees of a tenant that is searched in the database: counted once for each generation."""

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
_MOST_SERVERS = 64


class NotInDatabaseError(Exception):
    """The tenant is searched in memory now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantState:
    """Where a tenant stands, as one transaction sees it."""

    model_id: str
    model: int
    dimension: int
    graph: bool
    generations: tuple[int, int]
    own_tools: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleScope:
    """What a caller sees of one scope: of everyone's, the `servers` in their reach (None for all)."""

    owner: str
    servers: frozenset[str] | None
    counts: Mapping[tuple[str, str], int]
    total: int
    has_vectors: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TenantView:
    """What a caller sees in sum; `shadowed` are the terms and names of everyone's tools that the caller's own hide."""

    parts: tuple[VisibleScope, ...]
    visible: int
    tokens: int
    categories: tuple[str, ...]
    servers: tuple[str, ...]
    shadowed: tuple[tuple[bytes, str], ...]


async def read_state(db: AsyncConnection, caller: Caller) -> TenantState:
    """Read where the caller's tenant stands."""
    names = {"tenant": caller.tenant, "user": caller.user or ""}
    in_database, model_id, model, dimension, graph, shared, own, own_tools = await fetch_one(db, _STATE, names)
    if not in_database:
        raise NotInDatabaseError
    return TenantState(
        model_id=model_id,
        model=model,
        dimension=dimension,
        graph=graph,
        generations=(shared, own),
        own_tools=own_tools,
    )


async def read_view(db: AsyncConnection, caller: Caller, state: TenantState) -> TenantView:
    """Add up what the caller may see."""
    owners = ["", caller.user] if caller.user and state.own_tools else [""]
    parts: list[VisibleScope] = []
    sums: Counter[tuple[str, str]] = Counter()
    tokens = 0
    for owner in owners:
        found = [
            (server, category.decode("utf-8", "surrogatepass"), tools, size)
            for server, category, tools, size in await fetch_all(db, _SUMMARY, (caller.tenant, owner))
        ]
        reach = None if owner else caller.servers
        if reach is not None and reach.issuperset(row[0] for row in found):
            reach = None
        if reach is not None:
            found = [row for row in found if row[0] in reach]
        counts = {(server, category): tools for server, category, tools, _ in found}
        tokens += sum(size for *_, size in found)
        sums.update(counts)
        (has_vectors,) = await fetch_one(db, _WITH_VECTORS, (caller.tenant, owner))
        parts.append(
            VisibleScope(owner=owner, servers=reach, counts=counts, total=sum(counts.values()), has_vectors=has_vectors)
        )
    shadowed = []
    if len(parts) > 1:
        for server, category, size, terms, names in await fetch_all(db, _SHADOWED, (caller.tenant, caller.user)):
            if parts[0].servers is None or server in parts[0].servers:
                sums[server, category.decode("utf-8", "surrogatepass")] -= 1
                tokens -= size
                shadowed.append((terms, names))
    seen = [pair for pair, count in sums.items() if count > 0]
    return TenantView(
        parts=tuple(parts),
        visible=sum(sums.values()),
        tokens=tokens,
        categories=tuple(sorted({category for _, category in seen})),
        servers=tuple(sorted({server for server, _ in seen})),
        shadowed=tuple(shadowed),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeQuery:
    """One scope's part of a search: the condition on rows `r`, its values, and at most how many rows it leaves.

    `labels` asks the word index for the same, and `selective` says that this is the quicker way in.
    """

    part: VisibleScope
    where: str
    values: dict[str, Any]
    most: int
    labels: str
    selective: bool


def narrow_part(
    view: TenantView, part: VisibleScope, caller: Caller, narrow: Filter, named: frozenset[str], tags: Mapping[str, int]
) -> ScopeQuery:
    """Write a filter as a condition; `named` are the servers that it names, `tags` its tags with their counts."""
    where = "r.tenant = %(tenant)s AND r.owner = %(owner)s AND r.enabled"
    values: dict[str, Any] = {"tenant": caller.tenant, "owner": part.owner, "user": caller.user}
    values |= {"servers": None, "hidden_by": None}
    servers = part.servers
    if narrow.servers:
        servers = named if servers is None else servers & named
    queries: list[str] = []
    if servers is not None:
        where += " AND r.server = ANY (%(servers)s)"
        values["servers"] = sorted(servers)
        if narrow.servers and 0 < len(servers) <= _MOST_SERVERS:
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
    if len(view.parts) > 1 and not part.owner:
        where += _NOT_SHADOWED
        values["hidden_by"] = caller.user
    most = _most(part, servers, narrow.category)
    if tags:
        most = min(most, (min if narrow.match == "all" else sum)(tags.values()))
    return ScopeQuery(
        part=part,
        where=where,
        values=values,
        most=most,
        labels=" & ".join(queries),
        selective=bool(queries) and most * 4 < part.total,
    )


def _most(part: VisibleScope, servers: frozenset[str] | None, category: str | None) -> int:
    if servers is part.servers and category is None:
        return part.total
    wanted = None if category is None else category.casefold()
    return sum(
        count
        for (server, held), count in part.counts.items()
        if (servers is None or server in servers) and (wanted is None or held.casefold() == wanted)
    )
