"""The index pipeline: which tools are new, changed, unchanged or removed, and what is published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolscout import BadToolError, Scout, ToolNotFoundError
from toolscout.models import IndexReport

ROWS: list[dict[str, Any]] = [
    {"server": "mail", "name": "send", "description": "Send a letter.", "input_schema": {"properties": {"to": {}}}},
    {"server": "mail", "name": "read", "description": "Read a letter."},
    {"server": "maps", "name": "route", "description": "Plan a route."},
]


def _counts(report: IndexReport) -> tuple[int, int, int, int]:
    return (report.new, report.changed, report.unchanged, report.removed)


def _with(place: int, **change: Any) -> list[dict[str, Any]]:
    return [{**row, **change} if number == place else row for number, row in enumerate(ROWS)]


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Give the address of a catalogue that does not exist yet."""
    return f"sqlite:///{tmp_path / 'new folder' / 'catalogue.db'}"


async def test_the_first_time_everything_is_new(open_scout: Callable[..., Scout]) -> None:
    async with open_scout() as scout:
        report = await scout.index_tools(ROWS)
    assert _counts(report) == (3, 0, 0, 0)
    assert (report.total, report.embedded, report.unembedded, report.dropped) == (3, 3, 0, ())


async def test_unchanged_tools_are_neither_embedded_nor_published_again(
    open_scout: Callable[..., Scout], store: str, embedder: Any
) -> None:
    async with open_scout(store=store) as scout:
        first = await scout.index_tools(ROWS)
        embedded = embedder.documents
        again = await scout.index_tools(ROWS)
    async with open_scout(store=store) as scout:
        restarted = await scout.index_tools([dict(reversed(row.items())) for row in reversed(ROWS)])
    assert embedder.documents == embedded
    for report in (again, restarted):
        assert _counts(report) == (0, 0, 3, 0)
        assert (report.embedded, report.generation) == (0, first.generation)


@pytest.mark.parametrize(
    ("change", "embedded"),
    [
        ({"description": "Send a letter!"}, 1),
        ({"input_schema": {"properties": {"to": {"type": "string"}}}}, 0),
        ({"input_schema": {"properties": {"whom": {}}}}, 1),
        ({"tags": ["post"]}, 1),
        ({"annotations": {"readOnlyHint": True}}, 0),
    ],
)
async def test_a_change_anywhere_is_seen_and_only_a_changed_text_is_embedded(
    open_scout: Callable[..., Scout], change: dict[str, Any], embedded: int
) -> None:
    async with open_scout(ROWS) as scout:
        before = (await scout.get_tool_details("mail__send"))[0].tool
        report = await scout.index_tools(_with(0, **change))
        after = (await scout.get_tool_details("mail__send"))[0].tool
    assert _counts(report) == (0, 1, 2, 0)
    assert report.embedded == embedded
    assert after.version != before.version


async def test_a_changed_description_is_found_by_its_new_words_only(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        await scout.index_tools(_with(0, description="Dispatch a parcel."))
        new = await scout.search_tools("parcel", ranker="keyword")
        assert [match.tool.key for match in new] == ["mail__send"]
        old = await scout.search_tools("letter", ranker="keyword")
        assert [match.tool.key for match in old] == ["mail__read"]


async def test_removed_tools_vanish_and_other_servers_stay(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        report = await scout.index_tools(ROWS[:1])
        keys = [match.tool.key for match in await scout.list_tools()]
        with pytest.raises(ToolNotFoundError):
            await scout.get_tool_details("mail__read")
    assert _counts(report) == (0, 0, 1, 1)
    assert keys == ["mail__send", "maps__route"]


async def test_a_server_can_be_removed_whole(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        assert await scout.remove_server("mail") == 2
        assert await scout.remove_server("mail") == 0
        assert [match.tool.key for match in await scout.list_tools()] == ["maps__route"]


async def test_indexing_nothing_changes_nothing(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        report = await scout.index_tools([])
        assert len(await scout.list_tools()) == 3
    assert _counts(report) == (0, 0, 0, 0)


async def test_a_disabled_tool_stays_disabled_when_it_is_indexed_again(
    open_scout: Callable[..., Scout], store: str
) -> None:
    async with open_scout(ROWS, store=store) as scout:
        await scout.set_enabled("mail__send", False)
        await scout.index_tools(ROWS)
        await scout.index_tools(_with(0, description="Send a parcel."))
        assert [match.tool.key for match in await scout.list_tools()] == ["mail__read", "maps__route"]
    async with open_scout(store=store) as scout:
        assert len(await scout.list_tools()) == 2
        await scout.set_enabled("mail__send", True)
        (match,) = await scout.get_tool_details("mail__send")
        assert match.tool.description == "Send a parcel."


async def test_a_tool_can_come_disabled(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(_with(0, enabled=False)) as scout:
        assert len(await scout.list_tools()) == 2
        await scout.set_enabled("mail__send", True)
        assert len(await scout.list_tools()) == 3


async def test_switching_what_does_not_exist_is_an_error(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        with pytest.raises(ToolNotFoundError):
            await scout.set_enabled("mail__burn", False)


async def test_tools_without_a_description_are_indexed_and_found_by_name(open_scout: Callable[..., Scout]) -> None:
    rows = [{"name": "rotate_image"}, {"name": "crop_image", "description": ""}, {"name": "x", "description": "  "}]
    async with open_scout(rows) as scout:
        answer = await scout.search_tools("rotate an image")
        assert answer[0].tool.key == "local__rotate_image"
        assert (await scout.list_tools()).metadata.total == 3


async def test_strict_refuses_all_for_one_bad_tool_and_keeps_what_was_there(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        before = [match.tool.version for match in await scout.list_tools()]
        bad = [*_with(0, description="Changed."), {"server": "maps", "name": "bad", "input_schema": 5}]
        with pytest.raises(BadToolError, match="maps: 'bad': its input_schema must be an object") as raised:
            await scout.index_tools(bad, strict=True)
        assert raised.value.hint
        assert [match.tool.version for match in await scout.list_tools()] == before


async def test_one_bad_tool_costs_only_itself(open_scout: Callable[..., Scout]) -> None:
    bad: list[Any] = [{"server": "maps", "name": "bad", "tags": 5}, None, "text", {"server": "\ud800", "name": "odd"}]
    async with open_scout() as scout:
        report = await scout.index_tools([*ROWS, *bad])
    assert report.new == 4
    assert [item.where for item in report.dropped] == ["local: tool 1", "local: tool 2", "maps: 'bad'"]


async def test_the_same_text_under_two_names_is_embedded_once(open_scout: Callable[..., Scout]) -> None:
    rows = [{"server": server, "name": "one", "title": server} for server in ("local", "local")]
    twins = [{"name": "same_tool", "category": "a"}, {"name": "sameTool", "category": "b"}]
    async with open_scout() as scout:
        assert (await scout.index_tools(rows)).embedded == 1
        report = await scout.index_tools(twins)
    assert (report.new, report.embedded) == (2, 1)


async def test_progress_is_reported_up_to_the_end(open_scout: Callable[..., Scout]) -> None:
    told: list[tuple[int, int]] = []
    rows = [{"name": f"tool_{number}"} for number in range(150)]
    async with open_scout() as scout:
        await scout.index_tools(rows, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (150, 150)
