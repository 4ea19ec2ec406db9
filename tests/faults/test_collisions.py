"""Names that meet: the same on several servers, twice on one, reserved or look-alikes. All stay, or are reported."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import IndexReport, Scout, Settings

pytestmark = guarantee("catalog:collision")


async def indexed(rows: Sequence[dict[str, Any]]) -> tuple[IndexReport, dict[str, str]]:
    """Index rows into a new catalogue; return the report, and key -> description."""
    async with Scout.open(store="memory:", embedder=HashEmbedder(), settings=Settings(quarantine=False)) as scout:
        report = await scout.index_tools(rows)
        return report, {match.tool.key: match.tool.description for match in await scout.list_tools(page_size=100)}


def shuffles(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [random.Random(seed).sample(list(rows), len(rows)) for seed in range(4)]


async def test_the_same_name_on_three_servers_is_three_tools() -> None:
    rows = [{"name": "search", "server": server, "description": f"Of {server}"} for server in ("a", "b", "c")]
    report, found = await indexed(rows)
    assert (report.new, report.dropped, report.collisions) == (3, (), ())
    assert found == {"a__search": "Of a", "b__search": "Of b", "c__search": "Of c"}


async def test_duplicates_on_one_server_are_reported_and_the_same_one_stays_in_any_order() -> None:
    rows = [
        {"name": "search", "description": "The first"},
        {"name": "search", "description": "The second"},
        {"name": "search", "description": "The second"},
        {"name": "other"},
    ]
    kept = set()
    for shuffled in shuffles(rows):
        report, found = await indexed(shuffled)
        assert report.new == 2
        assert [item.where for item in report.dropped] == ["local__search"] * 2
        kept.add(found["local__search"])
    assert len(kept) == 1


async def test_servers_whose_names_meet_as_slugs_are_kept_apart_and_reported() -> None:
    titles = ["my server", "my-server", "my/server", "my__server", "my_server"]
    rows = [{"name": "search", "server": title, "description": f"Of {title}"} for title in titles]
    keys = set()
    for shuffled in shuffles(rows):
        report, found = await indexed(shuffled)
        assert report.new == 5
        assert sorted(found.values()) == sorted(f"Of {title}" for title in titles)
        assert {item.where for item in report.collisions} == {"my server", "my/server", "my__server"}
        keys.add(tuple(sorted(found.items())))
    assert len(keys) == 1


async def test_a_server_that_comes_later_does_not_take_a_slug_that_is_taken() -> None:
    async with Scout.open(store="memory:", embedder=HashEmbedder(), settings=Settings(quarantine=False)) as scout:
        await scout.index_tools([{"name": "search", "server": "my server", "description": "first come"}])
        report = await scout.index_tools([{"name": "search", "server": "my-server", "description": "later"}])
        assert len(report.collisions) == 1
        listed = await scout.list_tools()
        assert sorted(match.tool.description for match in listed) == ["first come", "later"]
        assert (await scout.get_tool_details("my-server__search"))[0].tool.description == "first come"


@pytest.mark.parametrize("name", ["search_tools", "call_tool", "get_tool_details", "list_tools", "call_read_tool"])
async def test_reserved_names_live_under_their_servers_key(name: str) -> None:
    report, found = await indexed([{"name": name, "server": "sly"}, {"name": name}])
    assert (report.new, set(found)) == (2, {f"sly__{name}", f"local__{name}"})


@pytest.mark.parametrize(
    ("one", "other"),
    [("paypal", "pаypal"), ("search", "ѕearch"), ("read", "Read"), ("list_l", "list_1"), ("go", "gο")],
    ids=["cyrillic a", "cyrillic s", "case", "one for l", "greek o"],
)
async def test_look_alikes_are_two_tools(one: str, other: str) -> None:
    report, found = await indexed([{"name": one, "description": "one"}, {"name": other, "description": "other"}])
    assert report.new == 2
    assert found == {f"local__{one}": "one", f"local__{other}": "other"}


async def test_two_ways_to_write_one_character_are_one_name_and_reported() -> None:
    report, found = await indexed([{"name": "caf\u00e9"}, {"name": "cafe\u0301"}])
    assert (report.new, len(report.dropped)) == (1, 1)
    assert set(found) == {"local__café"}


async def test_a_tool_name_with_the_separator_does_not_reach_into_another_server() -> None:
    report, found = await indexed(
        [
            {"name": "b__c", "server": "a", "description": "of a"},
            {"name": "c", "server": "a__b", "description": "of a__b"},
        ]
    )
    assert report.new == 2
    assert sorted(found.values()) == ["of a", "of a__b"]
