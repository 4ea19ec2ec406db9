"""Looking around without a query: categories, tags, pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from toolscout.models import Category, Facets, Pagination, Tag


def count_categories(tools: Sequence[Facets], describe: Callable[[str], str]) -> list[Category]:
    """Count the tools of each category, in the order of names."""
    counts = Counter(item.category for item in tools)
    return [Category(name=name, count=counts[name], description=describe(name)) for name in sorted(counts)]


def count_tags(tools: Sequence[Facets]) -> list[Tag]:
    """Count the tools of each tag, most used first, ties by name."""
    counts = Counter(tag for item in tools for tag in item.tags)
    return [Tag(name=name, count=count) for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def take_page(tools: Sequence[Facets], page: int, page_size: int) -> tuple[Sequence[Facets], Pagination]:
    """Cut one page out of a listing; a page past the end is empty, and its totals say so."""
    start = (page - 1) * page_size
    return tools[start : start + page_size], Pagination(page=page, page_size=page_size, total_tools=len(tools))
