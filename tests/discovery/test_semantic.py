"""`semantic`, document 000: cosine, 0.2 for each matching tag, clamped; tags filter first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolscout import Scout
from toolscout.discovery.rankers.semantic import rank_semantic
from toolscout.models import Candidates, Facets

ROWS: list[dict[str, Any]] = [
    {"server": server, "name": name, "description": description, "tags": tags.split()}
    for server, name, description, tags in (
        ("exa", "research_paper_search", "Search academic research papers.", "search research"),
        ("exa", "web_search_exa", "Search the web.", "search web"),
        ("context7", "get-library-docs", "Fetch documentation of a library.", "documentation"),
        ("desktop-commander", "file_write", "Save text to a file.", "storage"),
        ("basic-memory", "store_memory", "Store data in memory.", "storage memory"),
        ("quality", "lint", "Analyze the quality of code.", "testing"),
    )
]


@pytest.mark.parametrize(
    ("cosine", "tags", "asked", "score"),
    [
        (0.5, (), (), 0.5),
        (0.5, ("a",), (), 0.5),
        (0.5, ("a",), ("a",), 0.7),
        (0.5, ("a", "b"), ("a", "b"), 0.9),
        (0.5, ("a", "b"), ("a",), 0.7),
        (0.5, ("A",), ("a",), 0.7),
        (0.75, ("a", "b"), ("a", "b"), 1.0),
        (-0.3, (), (), 0.0),
        (-0.3, ("a",), ("a",), 0.2),
        (1.0, (), (), 1.0),
    ],
)
def test_the_score_is_the_formula_of_the_document(
    make_facets: Callable[..., Facets],
    make_candidates: Callable[..., Candidates],
    cosine: float,
    tags: tuple[str, ...],
    asked: tuple[str, ...],
    score: float,
) -> None:
    (hit,) = rank_semantic(make_candidates([make_facets("tool", tags=tags)], [cosine]), asked)
    assert hit.score == pytest.approx(score)
    assert hit.matched_tags == tuple(tag for tag in tags if tag.lower() in asked)


def test_the_explanation_gives_the_parts(
    make_facets: Callable[..., Facets], make_candidates: Callable[..., Candidates]
) -> None:
    (hit,) = rank_semantic(make_candidates([make_facets("tool", tags=("a",))], [0.25]), ["a"])
    assert hit.parts == {"cosine": 0.25, "tags": 1}


async def test_a_need_in_plain_words_finds_the_tools_of_the_first_scenario(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        answer = await scout.search_tools("search for research papers", ranker="semantic")
    names = [match.tool.name for match in answer]
    assert names[0] == "research_paper_search"
    assert "web_search_exa" in names[:3]
    scores = [match.score or 0 for match in answer]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


async def test_a_task_across_servers_finds_tools_of_each(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        answer = await scout.search_tools("search academic papers and save to file", ranker="semantic", top_k=3)
    assert {"research_paper_search", "file_write"} <= {match.tool.name for match in answer}


async def test_tags_filter_before_anything_is_ranked(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        answer = await scout.search_tools("store data", tags=["storage", "memory"], ranker="semantic")
    assert [match.tool.name for match in answer] == ["store_memory", "file_write"]
    assert answer[0].matched_tags == ("storage", "memory")
    assert answer[1].matched_tags == ("storage",)


async def test_each_matching_tag_adds_a_fifth(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        plain = {m.tool.name: m.score for m in await scout.search_tools("write things down", ranker="semantic")}
        tagged = await scout.search_tools("write things down", tags=["storage", "memory"], ranker="semantic")
    for match in tagged:
        assert match.score == pytest.approx(min(1.0, (plain[match.tool.name] or 0) + 0.2 * len(match.matched_tags)))


async def test_scores_do_not_all_become_one(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("send an email to the team", ranker="semantic")
    assert len({round(match.score or 0, 6) for match in answer}) == len(answer)
