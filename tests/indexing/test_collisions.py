"""Names that meet: twice in one server, on several servers, or two servers whose names map to one slug."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from guarantees import guarantee
from toolscout import BadToolError, Scout, Settings
from toolscout.indexing.fetch import slug_collisions
from toolscout.tool_keys import assign_slugs, server_slug, split_key, tool_key

pytestmark = guarantee("catalog:collision")


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("github", "github"),
        ("My Server!", "My-Server"),
        ("a__b", "a_b"),
        ("_a_", "a"),
        ("com.example/mail", "com.example-mail"),
        ("a - b", "a---b"),
        ("v1.2-beta_3", "v1.2-beta_3"),
    ],
)
def test_a_slug_has_letters_digits_dots_dashes_and_single_inner_underscores(title: str, slug: str) -> None:
    assert server_slug(title) == slug
    assert server_slug(slug) == slug


@pytest.mark.parametrize("title", ["サーバー", "!!!", "___", "\U0001f4a5"])
def test_a_title_without_any_such_character_gets_a_slug_of_its_own(title: str) -> None:
    slug = server_slug(title)
    assert slug.startswith("server-")
    assert slug != server_slug(title + title)


@pytest.mark.parametrize("name", ["a", "a__b", "__a", "a.b/c"])
def test_the_first_double_underscore_splits_a_key(name: str) -> None:
    assert split_key(tool_key(server_slug("x__y"), name)) == ("x_y", name)


async def test_one_name_on_three_servers_is_three_tools(open_scout: Callable[..., Scout]) -> None:
    rows = [{"server": server, "name": "search", "description": f"Search {server}."} for server in ("a", "b", "c")]
    async with open_scout() as scout:
        report = await scout.index_tools(rows)
        details = await scout.get_tool_details(["a__search", "b__search", "c__search"])
    assert (report.new, report.dropped, report.collisions) == (3, (), ())
    assert [match.tool.description for match in details] == ["Search a.", "Search b.", "Search c."]


TWICE = [
    {"name": "search", "description": "First."},
    {"name": "search", "description": "Second."},
    {"name": "search", "description": "Third."},
]


async def test_of_several_tools_with_one_name_the_same_is_kept_in_every_order(open_scout: Callable[..., Scout]) -> None:
    kept = set()
    for rows in itertools.permutations(TWICE):
        async with open_scout() as scout:
            report = await scout.index_tools(rows)
            (match,) = await scout.get_tool_details("local__search")
        kept.add(match.tool.description)
        assert report.new == 1
        assert [(item.where, item.reason) for item in report.dropped] == [
            ("local__search", "another tool of the server has this name")
        ] * 2
    assert len(kept) == 1


async def test_the_same_definition_twice_is_reported_as_such(open_scout: Callable[..., Scout]) -> None:
    async with open_scout() as scout:
        report = await scout.index_tools([TWICE[0], TWICE[0]])
        assert report.dropped[0].reason == "the same definition comes twice"
        with pytest.raises(BadToolError, match="twice"):
            await scout.index_tools([TWICE[0], TWICE[0]], strict=True)


async def test_names_that_differ_in_case_are_two_tools(open_scout: Callable[..., Scout]) -> None:
    async with open_scout([{"name": "getUser"}, {"name": "getuser"}]) as scout:
        assert (await scout.list_tools()).metadata.total == 2


TITLES = ["my server", "my-server", "my/server", "my server!"]


def test_servers_that_map_to_one_slug_get_the_same_slugs_in_every_order() -> None:
    expected = assign_slugs(TITLES, {})
    assert len(set(expected.values())) == len(TITLES)
    assert expected["my-server"] == "my-server"
    assert {item.where for item in slug_collisions(expected, {})} == set(TITLES) - {"my-server"}
    for order in itertools.permutations(TITLES):
        assert list(assign_slugs(order, {}).items()) == list(expected.items())


def test_a_server_that_has_a_slug_keeps_it_whoever_comes_or_goes() -> None:
    known = {slug: title for title, slug in assign_slugs(TITLES, {}).items()}
    assert assign_slugs(TITLES, known) == {title: slug for slug, title in known.items()}
    del known["my-server"]
    assert assign_slugs(["my/server"], known)["my/server"] in known


def test_a_slug_that_looks_like_one_kept_apart_is_not_shared() -> None:
    apart = assign_slugs(["a b", "a-b"], {})["a b"]
    slugs = assign_slugs(["a b", "a-b", apart], {})
    assert len(set(slugs.values())) == 3


async def test_colliding_servers_are_all_indexed_and_reported(open_scout: Callable[..., Scout]) -> None:
    rows: list[dict[str, Any]] = [{"server": title, "name": "search", "description": title} for title in TITLES]
    listings = []
    for order in (rows, rows[::-1]):
        async with open_scout() as scout:
            report = await scout.index_tools(order)
            again = await scout.index_tools(order)
            listings.append([(match.tool.key, match.tool.description) for match in await scout.list_tools()])
        assert (report.new, len(report.collisions)) == (4, 3)
        assert (again.unchanged, len(again.collisions)) == (4, 3)
        assert "my-server" in report.collisions[0].reason
    assert listings[0] == listings[1]
    assert {description for _, description in listings[0]} == set(TITLES)


async def test_the_operators_spelling_is_kept_for_search_and_filters(open_scout: Callable[..., Scout]) -> None:
    async with open_scout([{"server": "Große Küche", "name": "cook"}]) as scout:
        (match,) = await scout.search_tools("cook", servers=["Große Küche"], ranker="keyword")
    assert (match.tool.server_title, match.tool.server) == ("Große Küche", "Gro-e-K-che")


async def test_names_that_only_look_alike_are_kept_apart(open_scout: Callable[..., Scout]) -> None:
    rows = [{"name": "send"}, {"name": "s\u0435nd"}, {"name": "se\u200bnd"}]
    async with open_scout(settings=Settings(quarantine=False)) as scout:
        report = await scout.index_tools(rows)
        details = await scout.get_tool_details([f"local__{row['name']}" for row in rows])
    assert (report.new, report.dropped) == (3, ())
    assert [match.tool.name for match in details] == [row["name"] for row in rows]


async def test_a_tool_may_be_called_like_one_of_ours(open_scout: Callable[..., Scout]) -> None:
    async with open_scout([{"server": "other", "name": "search_tools"}, {"name": "call_tool"}]) as scout:
        assert [match.tool.key for match in await scout.list_tools()] == ["local__call_tool", "other__search_tools"]
