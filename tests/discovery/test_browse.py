"""Looking around without a query: pages, categories, tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from toolscout import InvalidValueError, Scout, UnknownCategoryError
from toolscout.models import Pagination

MANY = [{"server": f"s{n % 3}", "name": f"tool_{n:03}", "category": ("odd", "even")[n % 2]} for n in range(230)]


async def _pages(scout: Scout, **options: Any) -> list[tuple[list[str], Pagination]]:
    pages, number = [], 1
    while True:
        answer = await scout.list_tools(page=number, **options)
        assert answer.pagination is not None
        pages.append(([match.tool.key for match in answer], answer.pagination))
        if not answer.pagination.has_next:
            return pages
        number += 1


async def test_pages_hold_fifty_and_cover_everything_once_in_the_order_of_keys(
    open_scout: Callable[..., Scout],
) -> None:
    async with open_scout(MANY) as scout:
        pages = await _pages(scout)
    keys = [key for page, _ in pages for key in page]
    assert [len(page) for page, _ in pages] == [50, 50, 50, 50, 30]
    assert keys == sorted(f"{row['server']}__{row['name']}" for row in MANY)
    assert [(page.has_prev, page.has_next) for _, page in pages] == [
        (False, True),
        (True, True),
        (True, True),
        (True, True),
        (True, False),
    ]
    assert {(page.page_size, page.total_tools, page.total_pages) for _, page in pages} == {(50, 230, 5)}


async def test_a_page_holds_a_hundred_at_most(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(MANY) as scout:
        answer = await scout.list_tools(page_size=5_000)
        exact = await scout.list_tools(page_size=100)
    assert answer.pagination == exact.pagination
    assert (len(answer), answer.pagination.page_size, answer.pagination.total_pages) == (100, 100, 3)  # type: ignore[union-attr]


async def test_a_page_past_the_end_is_empty_and_says_how_many_there_are(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(MANY) as scout:
        answer = await scout.list_tools(page=9)
    assert len(answer) == 0
    assert answer.pagination == Pagination(page=9, page_size=50, total_tools=230)
    assert (answer.pagination.has_next, answer.pagination.has_prev) == (False, True)


async def test_an_empty_catalogue_has_no_pages(open_scout: Callable[..., Scout]) -> None:
    async with open_scout() as scout:
        answer = await scout.list_tools()
        assert await scout.list_categories() == []
        assert await scout.list_tags() == []
    assert (answer.pagination.total_pages, answer.pagination.has_next) == (0, False)  # type: ignore[union-attr]


async def test_a_listing_can_be_narrowed_to_a_category_and_a_server(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(MANY) as scout:
        even = await _pages(scout, category="EVEN")
        one = await _pages(scout, category="even", server="s1", page_size=7)
    assert sum(len(page) for page, _ in even) == 115
    assert all(key.startswith("s1__") for page, _ in one for key in page)
    assert one[0][1].total_tools == sum(len(page) for page, _ in one) < 115


@pytest.mark.parametrize("options", [{"page": 0}, {"page": -1}, {"page_size": 0}, {"page": 1.5}, {"detail": "all"}])
async def test_a_page_that_cannot_be_is_refused(sample_scout: Scout, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError) as raised:
        await sample_scout.list_tools(**options)
    assert raised.value.hint


async def test_a_category_that_nobody_is_in_is_refused_with_the_others(sample_scout: Scout) -> None:
    with pytest.raises(UnknownCategoryError) as raised:
        await sample_scout.list_tools(category="databasses")
    assert raised.value.suggestions[0] == "databases"


async def test_categories_are_counted_and_described(sample_scout: Scout, sample_rows: list[dict[str, Any]]) -> None:
    categories = await sample_scout.list_categories()
    assert sum(item.count for item in categories) == len(sample_rows)
    assert [item.name for item in categories] == sorted(item.name for item in categories)
    assert all(item.description.endswith(".") for item in categories)
    for item in categories:
        listing = await sample_scout.list_tools(category=item.name)
        assert listing.pagination.total_tools == item.count  # type: ignore[union-attr]


async def test_tags_are_counted_most_used_first(sample_scout: Scout) -> None:
    tags = await sample_scout.list_tags()
    assert [(-item.count, item.name) for item in tags] == sorted((-item.count, item.name) for item in tags)
    for item in tags:
        assert (await sample_scout.find_by_tags([item.name])).metadata.matched >= item.count


TAGGED = [
    {"name": "a", "tags": ["html", "web"]},
    {"name": "b", "tags": ["HTML", "async"]},
    {"name": "c", "tags": ["web"]},
    {"name": "d", "tags": ["other"]},
]


@pytest.mark.parametrize(
    ("tags", "match", "names"),
    [
        (["html"], "any", ["a", "b"]),
        (["html", "web"], "any", ["a", "b", "c"]),
        (["html", "web"], "all", ["a"]),
        (["html", "async"], "all", ["b"]),
        (["html", "html"], "all", ["a", "b"]),
        (["other", "web"], "all", []),
    ],
)
async def test_tools_are_found_by_any_or_all_tags(
    open_scout: Callable[..., Scout], tags: list[str], match: Any, names: list[str]
) -> None:
    async with open_scout(TAGGED) as scout:
        answer = await scout.find_by_tags(tags, match=match)
    assert [hit.tool.name for hit in answer] == names
    assert answer.metadata.matched == len(names)


async def test_finding_by_no_tag_or_in_an_unknown_way_is_refused(sample_scout: Scout) -> None:
    with pytest.raises(InvalidValueError, match="no tag"):
        await sample_scout.find_by_tags([])
    with pytest.raises(InvalidValueError, match="'any' or 'all'"):
        await sample_scout.find_by_tags(["email"], match="none")  # type: ignore[arg-type]


async def test_the_counts_of_a_listing_agree_with_its_tools(sample_scout: Scout) -> None:
    seen: Counter[str] = Counter()
    for page, _ in await _pages(sample_scout, page_size=30):
        details = await sample_scout.get_tool_details(page)
        seen.update(match.tool.category for match in details)
    assert dict(seen) == {item.name: item.count for item in await sample_scout.list_categories()}
