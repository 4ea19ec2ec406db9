"""Full definitions by key, and what a wrong key is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolscout import InvalidValueError, Scout, ToolNotFoundError


async def test_several_keys_come_back_whole_in_the_order_asked(
    sample_scout: Scout, sample_rows: list[dict[str, Any]]
) -> None:
    keys = ["stripe__create_refund", "github__create_issue", "notion__API-search"]
    answer = await sample_scout.get_tool_details(keys)
    assert [match.tool.key for match in answer] == keys
    rows = {f"{row['server']}__{row['name']}": row for row in sample_rows}
    for match in answer:
        row = rows[match.tool.key]
        assert match.detail == "full"
        assert match.tool.description == row["description"]
        assert match.tool.input_schema == row["input_schema"]
        assert list(match.tool.input_schema["properties"]) == list(row["input_schema"]["properties"])
        assert match.tool.annotations == row.get("annotations", {})


async def test_every_definition_of_the_sample_comes_back_as_it_was(
    sample_scout: Scout, sample_rows: list[dict[str, Any]]
) -> None:
    for row in sample_rows:
        (match,) = await sample_scout.get_tool_details(f"{row['server']}__{row['name']}")
        assert match.tool.input_schema == row["input_schema"]
        assert list(match.tool.examples) == row.get("examples", [])
        assert list(match.tool.related) == row.get("related", [])


async def test_one_key_may_be_given_as_text(sample_scout: Scout) -> None:
    answer = await sample_scout.get_tool_details("gmail__send_email")
    assert [match.tool.name for match in answer] == ["send_email"]


async def test_a_key_asked_for_twice_comes_once(sample_scout: Scout) -> None:
    answer = await sample_scout.get_tool_details(["gmail__send_email", "gmail__send_email"])
    assert len(answer) == 1


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("gmail__send_emial", "gmail__send_email"),
        ("GMAIL__SEND_EMAIL", "gmail__send_email"),
        ("send_email", "gmail__send_email"),
        ("outlook__send_email", "gmail__send_email"),
        ("github_create_issue", "github__create_issue"),
        ("jira__create_issue", "jira__createIssue"),
        ("kubernetes__pod_list", "kubernetes__pods_list"),
    ],
)
async def test_a_wrong_key_is_told_which_was_meant(sample_scout: Scout, given: str, meant: str) -> None:
    with pytest.raises(ToolNotFoundError) as raised:
        await sample_scout.get_tool_details(given)
    assert meant in raised.value.suggestions
    assert len(raised.value.suggestions) <= 3
    assert raised.value.hint


async def test_a_key_like_nothing_gets_no_suggestion(sample_scout: Scout) -> None:
    with pytest.raises(ToolNotFoundError) as raised:
        await sample_scout.get_tool_details("qqqqqqqqqqqq")
    assert raised.value.suggestions == ()


async def test_one_wrong_key_among_good_ones_loses_nothing(sample_scout: Scout) -> None:
    answer = await sample_scout.get_tool_details(["gmail__send_email", "gmail__delete_emial"])
    assert [match.tool.key for match in answer] == ["gmail__send_email"]
    assert len(answer.suggestions) == 1
    assert "gmail__delete_emial" in answer.suggestions[0]
    assert "gmail__delete_email" in answer.suggestions[0]


async def test_no_key_at_all_is_refused(sample_scout: Scout) -> None:
    with pytest.raises(InvalidValueError, match="no key"):
        await sample_scout.get_tool_details([])


async def test_suggestions_are_the_same_in_every_insertion_order(
    open_scout: Callable[..., Scout], sample_rows: list[dict[str, Any]]
) -> None:
    async def suggested(rows: list[dict[str, Any]]) -> tuple[str, ...]:
        async with open_scout(rows) as scout:
            with pytest.raises(ToolNotFoundError) as raised:
                await scout.get_tool_details("github__list")
            return raised.value.suggestions

    assert await suggested(sample_rows[:30]) == await suggested(sample_rows[:30][::-1])


async def test_many_unknown_keys_are_counted_and_more_than_a_page_is_refused(sample_scout: Scout) -> None:
    unknown = [f"github__nothing_{number}" for number in range(100)]
    answer = await sample_scout.get_tool_details(["github__create_issue", *unknown])
    assert len(answer) == 1
    assert len(answer.suggestions) == 4
    assert answer.suggestions[-1] == "97 other keys do not exist either"
    with pytest.raises(InvalidValueError, match="from 1 to 200"):
        await sample_scout.get_tool_details([f"x__{number}" for number in range(1_000)])
