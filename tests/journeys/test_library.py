"""A developer's first hour with the library: open, search, look closer, change something, come back tomorrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolscout import Answer, Caller, Scout, StoreError, ToolMatch, ToolscoutError, sample


async def test_three_lines_find_a_tool() -> None:
    async with Scout.open(tools=sample.path()) as scout:
        answer = await scout.search_tools("analyze slow queries of the database", top_k=3)
        assert answer[0].tool.key == "postgres__list_slow_queries"
    assert isinstance(answer, Answer)
    assert all(isinstance(match, ToolMatch) for match in answer)
    assert answer[:2] == answer.matches[:2]


async def test_a_search_leads_to_details_and_related_tools(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("refund a payment", detail="minimal", top_k=1)
    details = await sample_scout.get_tool_details(answer[0].tool.key)
    assert "properties" in details[0].tool.input_schema
    related = await sample_scout.get_related_tools(answer[0].tool.key)
    assert {match.tool.server for match in related} == {"stripe"}


async def test_exploring_goes_from_categories_to_a_tool(sample_scout: Scout) -> None:
    categories = {item.name: item.count for item in await sample_scout.list_categories()}
    page = await sample_scout.list_tools(category="payments", detail="brief")
    assert len(page) == categories["payments"]
    tags = [item.name for item in await sample_scout.list_tags()]
    tagged = await sample_scout.find_by_tags([tags[0]])
    assert len(tagged) > 0


async def test_a_catalogue_in_a_file_can_be_opened_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalogue.db'}"
    async with Scout.open(tools=[{"name": "send_letter", "description": "Send a letter."}], store=url) as scout:
        await scout.search_tools("letter")
    async with Scout.open(store=url) as scout:
        assert (await scout.search_tools("post a letter"))[0].tool.name == "send_letter"


async def test_two_scouts_share_one_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalogue.db'}"
    async with Scout.open(store=url) as one, Scout.open(store=url) as two:
        await one.index_tools([{"name": "a"}])
        await two.index_tools([{"server": "other", "name": "b"}])
        assert [match.tool.key for match in await two.list_tools()] == ["local__a", "other__b"]


async def test_a_generator_of_rows_is_enough() -> None:
    async with Scout.open(tools=({"name": f"tool_{number}"} for number in range(3))) as scout:
        assert (await scout.list_tools()).metadata.total == 3


async def test_by_default_the_catalogue_is_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    async with Scout.open() as scout:
        await scout.index_tools([{"name": "a"}])
    assert (tmp_path / "toolscout" / "catalogue.db").exists()


async def test_a_scout_that_was_not_entered_says_how_to_use_it() -> None:
    scout = Scout.open(store="memory:")
    with pytest.raises(StoreError) as raised:
        await scout.search_tools("letter")
    assert "async with" in raised.value.hint
    await scout.__aexit__(None, None, None)


async def test_an_empty_catalogue_answers_and_suggests(tmp_path: Path) -> None:
    async with Scout.open(store="memory:") as scout:
        answer = await scout.search_tools("anything")
    assert len(answer) == 0
    assert answer.suggestions
    assert answer.metadata.total == 0


async def test_every_error_has_a_code_and_a_hint(sample_scout: Scout) -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("search_tools", {"query": ""}),
        ("search_tools", {"query": "x", "ranker": "best"}),
        ("search_tools", {"query": "x", "category": "none"}),
        ("search_tools", {"query": "x", "top_k": -1}),
        ("list_tools", {"page": 0}),
        ("find_by_tags", {"tags": []}),
        ("get_related_tools", {"name": "none"}),
        ("get_tool_details", {"names": "none"}),
    ]
    codes = set()
    for method, arguments in requests:
        with pytest.raises(ToolscoutError) as raised:
            await getattr(sample_scout, method)(**arguments, caller=Caller())
        assert raised.value.hint
        codes.add(raised.value.code)
    assert codes == {"empty_query", "unknown_ranker", "unknown_category", "invalid_value", "tool_not_found"}
