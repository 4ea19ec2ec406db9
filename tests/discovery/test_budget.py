"""The token budget: never exceeded, and the best hits get the most detail."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolscout import Scout, Tool, ToolMatch
from toolscout.discovery.answers import fit_budget
from toolscout.text import count_tokens

LEVELS = ("minimal", "brief", "full")

tools = st.builds(
    Tool,
    key=st.text(min_size=1, max_size=40),
    id=st.just(""),
    server=st.text(max_size=10),
    server_title=st.just(""),
    name=st.text(max_size=30),
    description=st.text(max_size=500),
    category=st.text(max_size=10),
    tags=st.lists(st.text(max_size=10), max_size=4).map(tuple),
    examples=st.lists(st.text(max_size=20), max_size=2).map(tuple),
    input_schema=st.dictionaries(st.text(max_size=10), st.text(max_size=200), max_size=5),
    fingerprint=st.just("0123456789abcdef"),
)
hits = st.builds(
    ToolMatch,
    tool=tools,
    score=st.none() | st.floats(min_value=0, max_value=200),
    relationship=st.none() | st.just("same_category"),
    explain=st.none() | st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


def _cost(matches: tuple[ToolMatch, ...]) -> int:
    return count_tokens([match.to_dict() for match in matches])


@pytest.mark.fuzz
@settings(max_examples=150, deadline=None)
@given(matches=st.lists(hits, max_size=12), detail=st.sampled_from(LEVELS), budget=st.integers(1, 3_000))
def test_the_budget_is_never_exceeded_and_detail_never_grows_down_the_list(
    matches: list[ToolMatch], detail: Any, budget: int
) -> None:
    fitted = fit_budget(matches, detail, budget)
    assert _cost(fitted) <= budget
    assert [match.tool for match in fitted] == [match.tool for match in matches[: len(fitted)]]
    ranks = [LEVELS.index(match.detail) for match in fitted]
    assert ranks == sorted(ranks, reverse=True)
    assert all(rank <= LEVELS.index(detail) for rank in ranks)


@given(matches=st.lists(hits, max_size=5), detail=st.sampled_from(LEVELS))
@settings(max_examples=30, deadline=None)
def test_a_budget_that_is_large_enough_changes_nothing(matches: list[ToolMatch], detail: Any) -> None:
    assert fit_budget(matches, detail, 10**6) == fit_budget(matches, detail, None)


@pytest.mark.parametrize("budget", [10, 40, 100, 250, 600, 1_500, 4_000])
@pytest.mark.parametrize("detail", LEVELS)
async def test_an_answer_never_costs_more_than_was_allowed(sample_scout: Scout, budget: int, detail: Any) -> None:
    answer = await sample_scout.search_tools("list issues", threshold=0, detail=detail, max_tokens=budget, explain=True)
    assert answer.metadata.tokens <= budget
    assert answer.metadata.tokens == _cost(answer.matches)


async def test_the_best_hits_keep_their_schemas_and_the_rest_is_brief(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("list issues", threshold=0, detail="full", max_tokens=1_700)
    levels = [match.detail for match in answer]
    assert len(levels) == 10
    assert levels[0] == "full"
    assert levels[-1] != "full"
    assert levels == sorted(levels, key=lambda level: -LEVELS.index(level))


async def test_a_budget_too_small_for_any_hit_says_so(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("list issues", ranker="keyword", max_tokens=1)
    assert len(answer) == 0
    assert answer.metadata.matched > 0
    assert "so few tokens" in answer.suggestions[0]
