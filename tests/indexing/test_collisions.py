"""Name collisions: the same tool name on several servers or twice on one, reserved names, look-alikes, shared slugs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import BadToolError, IndexReport, Scout, Settings
from toolscout.scout.indexer import slug_collisions
from toolscout.tool_keys import assign_slugs, server_slug, split_key, tool_key

pytestmark = guarantee("catalog:collision")


def _open(tools: Sequence[dict[str, Any]] | None = None) -> Scout:
    # Look-alikes are quarantined by default. These tests check that they are different tools.
    settings = Settings(quarantine=False)
    return Scout.open(tools=tools, store="memory:", embedder=HashEmbedder(), settings=settings)


async def _index(rows: Sequence[dict[str, Any]]) -> tuple[IndexReport, dict[str, str]]:
    """Index rows into a new catalogue. Return the report, and key -> description."""
    async with _open() as scout:
        report = await scout.index_tools(rows)
        return report, {match.tool.key: match.tool.description for match in await scout.list_tools(page_size=100)}


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


async def test_one_name_on_three_servers_is_three_tools() -> None:
    rows = [{"server": server, "name": "search", "description": f"Search {server}."} for server in ("a", "b", "c")]
    report, descriptions = await _index(rows)
    assert (report.new, report.dropped, report.collisions) == (3, (), ())
    assert descriptions == {"a__search": "Search a.", "b__search": "Search b.", "c__search": "Search c."}


@pytest.mark.parametrize("texts", [("First.", "Second.", "Third."), ("First.", "Second.", "Second.")])
async def test_of_several_tools_with_one_name_the_same_is_kept_in_every_order(texts: tuple[str, ...]) -> None:
    rows = [{"name": "search", "description": text} for text in texts]
    survivors = set()
    for order in itertools.permutations(rows):
        report, descriptions = await _index([*order, {"name": "other"}])
        assert (report.new, [item.where for item in report.dropped]) == (2, ["local__search"] * 2)
        if len(set(texts)) == 3:
            assert {item.reason for item in report.dropped} == {"another tool of the server has this name"}
        survivors.add(descriptions["local__search"])
    assert len(survivors) == 1


async def test_the_same_definition_twice_is_reported_as_such() -> None:
    row = {"name": "search", "description": "First."}
    async with _open() as scout:
        report = await scout.index_tools([row, row])
        assert report.dropped[0].reason == "the same definition comes twice"
        with pytest.raises(BadToolError, match="twice"):
            await scout.index_tools([row, row], strict=True)


TITLES = ["my server", "my-server", "my/server", "my server!", "my__server", "my_server"]
EXACT = {"my-server", "my_server"}


def test_servers_that_map_to_one_slug_get_the_same_slugs_in_every_order() -> None:
    expected = assign_slugs(TITLES, {})
    assert len(set(expected.values())) == len(TITLES)
    assert {title for title, slug in expected.items() if title == slug} == EXACT
    assert {item.where for item in slug_collisions(expected, {})} == set(TITLES) - EXACT
    for order in itertools.permutations(TITLES):
        assert list(assign_slugs(order, {}).items()) == list(expected.items())


def test_a_server_that_has_a_slug_keeps_it_whoever_comes_or_goes() -> None:
    stored_titles = {slug: title for title, slug in assign_slugs(TITLES, {}).items()}
    assert assign_slugs(TITLES, stored_titles) == {title: slug for slug, title in stored_titles.items()}
    del stored_titles["my-server"]
    assert assign_slugs(["my/server"], stored_titles)["my/server"] in stored_titles


def test_a_title_that_equals_the_slug_of_another_server_gets_its_own_slug() -> None:
    suffixed = assign_slugs(["a b", "a-b"], {})["a b"]
    slugs = assign_slugs(["a b", "a-b", suffixed], {})
    assert len(set(slugs.values())) == 3


async def test_colliding_servers_are_all_indexed_and_reported() -> None:
    rows = [{"server": title, "name": "search", "description": title} for title in TITLES]
    catalogues = []
    for order in (rows, rows[::-1], rows[3:] + rows[:3]):
        async with _open() as scout:
            report = await scout.index_tools(order)
            again = await scout.index_tools(order)
            catalogues.append([(match.tool.key, match.tool.description) for match in await scout.list_tools()])
        assert (report.new, {item.where for item in report.collisions}) == (6, set(TITLES) - EXACT)
        assert (again.unchanged, len(again.collisions)) == (6, 4)
        assert all("my-server" in item.reason or "my_server" in item.reason for item in report.collisions)
    assert catalogues[0] == catalogues[1] == catalogues[2]
    assert {description for _, description in catalogues[0]} == set(TITLES)


async def test_a_server_that_comes_later_does_not_take_a_slug_that_is_taken() -> None:
    async with _open() as scout:
        await scout.index_tools([{"name": "search", "server": "my server", "description": "first come"}])
        report = await scout.index_tools([{"name": "search", "server": "my-server", "description": "later"}])
        assert len(report.collisions) == 1
        page = await scout.list_tools()
        assert sorted(match.tool.description for match in page) == ["first come", "later"]
        assert (await scout.get_tool_details("my-server__search"))[0].tool.description == "first come"


async def test_the_operators_spelling_is_kept_for_search_and_filters() -> None:
    async with _open([{"server": "Große Küche", "name": "cook"}]) as scout:
        (match,) = await scout.search_tools("cook", servers=["Große Küche"], ranker="keyword")
    assert (match.tool.server_title, match.tool.server) == ("Große Küche", "Gro-e-K-che")


@pytest.mark.parametrize("name", ["search_tools", "call_tool", "get_tool_details", "list_tools", "call_read_tool"])
async def test_reserved_names_live_under_their_servers_key(name: str) -> None:
    report, descriptions = await _index([{"name": name, "server": "sly"}, {"name": name}])
    assert (report.new, set(descriptions)) == (2, {f"sly__{name}", f"local__{name}"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("paypal", "p\u0430ypal"),
        ("search", "\u0455earch"),
        ("send", "s\u0435nd"),
        ("getUser", "getuser"),
        ("list_l", "list_1"),
        ("go", "g\u03bf"),
        ("send", "se\u200bnd"),
    ],
    ids=["cyrillic a", "cyrillic s", "cyrillic e", "case", "one for l", "greek o", "zero width"],
)
async def test_look_alikes_are_two_tools(one: str, other: str) -> None:
    report, descriptions = await _index([{"name": one, "description": "one"}, {"name": other, "description": "other"}])
    assert report.new == 2
    assert descriptions == {f"local__{one}": "one", f"local__{other}": "other"}
    assert {item.where for item in report.look_alikes} == set(descriptions)
    assert any(item.reason == f"its name looks like that of local__{one}" for item in report.look_alikes)


async def test_names_that_differ_to_the_eye_and_equal_names_of_two_servers_are_no_look_alikes() -> None:
    names = ("get_user", "get_users", "get-user", "set_user", "получить", "取得")
    report, _ = await _index([{"name": name} for name in names] + [{"name": "get_user", "server": "other"}])
    assert (report.new, report.look_alikes) == (7, ())


async def test_two_ways_to_write_one_character_are_one_name_and_reported() -> None:
    report, descriptions = await _index([{"name": "caf\u00e9"}, {"name": "cafe\u0301"}])
    assert (report.new, len(report.dropped)) == (1, 1)
    assert set(descriptions) == {"local__café"}


async def test_a_tool_name_with_the_separator_does_not_reach_into_another_server() -> None:
    report, descriptions = await _index(
        [
            {"name": "b__c", "server": "a", "description": "of a"},
            {"name": "c", "server": "a__b", "description": "of a__b"},
        ]
    )
    assert report.new == 2
    assert sorted(descriptions.values()) == ["of a", "of a__b"]
