"""Checks of a request before anything is searched. Each error says what to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from toolscout.errors import (
    EmptyQueryError,
    InvalidValueError,
    UnknownCategoryError,
    UnknownRankerError,
    UnknownServerError,
    UnknownTagError,
)
from toolscout.models import Caller, Detail, Filter, Match, Query, ToolSort
from toolscout.ports import Store
from toolscout.settings import Settings
from toolscout.suggestions import did_you_mean

RANKERS = ("hybrid", "semantic", "keyword", "fuzzy", "boosted")
_LISTED_NAMES = 12


def check_queries(queries: Sequence[Query], categories: Sequence[str], settings: Settings) -> None:
    """Refuse an empty list, too many queries, and every query with an invalid value."""
    if not queries:
        raise EmptyQueryError("no query is given", hint="say what the tool should do")
    most = settings.max_queries
    if len(queries) > most:
        raise InvalidValueError(f"{len(queries)} queries in one call, over {most}", hint="ask in several calls")
    for query in queries:
        check_query(query, categories, settings)


def check_query(query: Query, categories: Sequence[str], settings: Settings) -> None:
    """Refuse a query with an invalid value."""
    if not isinstance(query.text, str):
        raise InvalidValueError(
            f"a query is text, not {type(query.text).__name__}", hint="say in words what the tool should do"
        )
    if not query.text.strip():
        raise EmptyQueryError(
            "the query is empty",
            hint="say what the tool should do, for example 'send an email'",
            categories=categories,
        )
    if len(query.text) > settings.max_query_chars:
        raise InvalidValueError(
            f"the query has {len(query.text):,} characters, over {settings.max_query_chars:,}",
            hint="describe the need in a sentence or two",
        )
    if query.ranker not in RANKERS:
        raise UnknownRankerError(
            f"no ranker is called {query.ranker!r}",
            hint=f"use one of {', '.join(RANKERS)}",
            suggestions=did_you_mean(query.ranker, RANKERS),
        )
    check_count("limit", query.limit, settings.max_limit)
    if query.max_tokens is not None:
        check_count("max_tokens", query.max_tokens)
    if query.threshold is not None and not isinstance(query.threshold, (int, float)):
        raise InvalidValueError(
            f"threshold is a number, not {query.threshold!r}", hint="omit it to use the ranker's own"
        )
    check_detail(query.detail)
    check_filter(query.filter, categories)


def check_sort(sort: str) -> None:
    """Refuse an order that does not exist."""
    if sort not in get_args(ToolSort):
        raise InvalidValueError(
            f"tools cannot be sorted by {sort!r}", hint=f"use one of {', '.join(get_args(ToolSort))}"
        )


def check_filter(narrow: Filter, categories: Sequence[str]) -> None:
    """Refuse a match mode or a category that does not exist."""
    if narrow.match not in get_args(Match):
        raise InvalidValueError(
            f"match is 'any' or 'all', not {narrow.match!r}", hint="any is enough where one tag will do"
        )
    if narrow.category is not None and narrow.category.casefold() not in {item.casefold() for item in categories}:
        raise UnknownCategoryError(
            f"no tool is in a category {narrow.category!r}",
            hint="use one of the available categories, or omit it",
            suggestions=did_you_mean(narrow.category, categories),
            categories=categories,
        )


def check_detail(detail: str) -> None:
    """Refuse a detail level that does not exist."""
    if detail not in get_args(Detail):
        raise InvalidValueError(
            f"detail is minimal, brief or full, not {detail!r}", hint="brief is enough to choose a tool"
        )


def check_count(name: str, value: int, most: int | None = None) -> None:
    """Refuse a count that is not a whole number from 1 to `most`."""
    if type(value) is not int or value < 1 or (most is not None and value > most):
        upto = f" to {most}" if most is not None else " up"
        raise InvalidValueError(
            f"{name} is {value!r}, but must be a whole number from 1{upto}", hint="omit it to use its default"
        )


async def check_servers(store: Store, servers: Sequence[str], caller: Caller) -> None:
    """Refuse a server, by slug or title, of which the caller can see no tool. The hint names only visible servers."""
    visible = (await store.overview(caller)).servers if servers else ()
    for name in dict.fromkeys(servers):
        if name not in visible and not await store.facets(caller, Filter(servers=(name,))):
            raise UnknownServerError(
                f"no tool is of a server {name!r}",
                hint=_hint("servers", visible),
                suggestions=did_you_mean(name, visible),
            )


async def check_tags(store: Store, tags: Sequence[str], caller: Caller) -> None:
    """Refuse a tag that no visible tool has. It reads all tags, so call it only where a search found nothing."""
    counts = Counter(tag for item in await store.facets(caller, Filter()) for tag in item.tags)
    by_fold = {tag.casefold(): tag for tag in sorted(counts, key=lambda tag: (-counts[tag], tag))}
    for name in tags:
        if name.casefold() not in by_fold:
            names = list(by_fold.values())
            raise UnknownTagError(
                f"no tool carries a tag {name!r}",
                hint=_hint("tags", names),
                suggestions=did_you_mean(name, names),
            )


def _hint(kind: str, names: Sequence[str]) -> str:
    listed = ", ".join(names[:_LISTED_NAMES]) + (", ..." if len(names) > _LISTED_NAMES else "")
    return f"omit it, or use one of the {kind}: {listed}" if names else "omit it"
