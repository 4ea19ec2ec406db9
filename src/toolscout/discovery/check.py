"""What a request may ask for: everything wrong with it is said before anything is searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from toolscout.discovery.suggest import did_you_mean
from toolscout.errors import EmptyQueryError, InvalidValueError, UnknownCategoryError, UnknownRankerError
from toolscout.models import Detail, Filter, Match, Query
from toolscout.settings import Settings

RANKERS = ("hybrid", "semantic", "keyword", "fuzzy", "boosted")


def check_query(query: Query, categories: Sequence[str], settings: Settings) -> None:
    """Raise the error that says what to change, or return."""
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
            f"threshold is a number, not {query.threshold!r}", hint="leave it away for the ranker's own"
        )
    check_detail(query.detail)
    check_filter(query.filter, categories)


def check_filter(narrow: Filter, categories: Sequence[str]) -> None:
    """Refuse a match mode or a category that does not exist."""
    if narrow.match not in get_args(Match):
        raise InvalidValueError(
            f"match is 'any' or 'all', not {narrow.match!r}", hint="any is enough where one tag will do"
        )
    if narrow.category is not None and narrow.category.casefold() not in {item.casefold() for item in categories}:
        raise UnknownCategoryError(
            f"no tool is in a category {narrow.category!r}",
            hint="use one of the available categories, or leave it away",
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
            f"{name} is {value!r}, but must be a whole number from 1{upto}", hint="leave it away for its default"
        )
