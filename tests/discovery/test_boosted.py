"""`boosted`, document 003: the registry's formula, services before tools, and its traps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolscout import Scout
from toolscout.discovery.rankers.boosted import TOP_K_SERVICES, rank_boosted
from toolscout.models import Candidates, Facets

TIME = {
    "name": "current_time_by_timezone",
    "description": "Get the hour for a place",
    "server": "clock",
    "tags": ("tokyo", "zone"),
}


@pytest.fixture
def score(
    make_facets: Callable[..., Facets], make_candidates: Callable[..., Candidates]
) -> Callable[[str, Facets, float], float]:
    """Give what scores one tool."""

    def scored(query: str, tool: Facets, cosine: float) -> float:
        return rank_boosted(query, make_candidates([tool], [cosine]))[0].score

    return scored


@pytest.mark.parametrize(
    ("query", "cosine", "boost"),
    [
        ("nothing", 0.0, 0),
        ("nothing", 1.0, 0),
        ("nothing", -1.0, 0),
        ("clock", 0.5, 5),
        ("timezone", 0.5, 3),
        ("hour", 0.5, 2),
        ("tokyo", 0.5, 1.5),
        ("clock timezone hour tokyo", 0.5, 5 + 3 + 2 + 1.5),
        ("tokyo zone", 0.5, 3 + 1.5),  # "zone" stands in the name too; a field counts once
        ("place hour", 0.5, 2),
    ],
)
def test_the_score_is_the_formula_of_the_document(
    make_facets: Callable[..., Facets],
    score: Callable[[str, Facets, float], float],
    query: str,
    cosine: float,
    boost: float,
) -> None:
    assert score(query, make_facets(**TIME), cosine) == pytest.approx((cosine + 1) / 2 + 0.05 * boost)


def test_scores_are_not_clamped_so_that_they_still_differ(
    make_facets: Callable[..., Facets], score: Callable[[str, Facets, float], float]
) -> None:
    query = "clock timezone hour tokyo"
    good, better = (score(query, make_facets(**TIME), cosine) for cosine in (0.8, 0.9))
    assert 1 < good < better


@pytest.mark.parametrize(
    ("query", "name", "description"),
    [("an", "manage_users", "Manage"), ("add", "address_book", "Find an address"), ("the", "other", "Weather there")],
)
def test_short_and_empty_words_boost_nothing_by_accident(
    make_facets: Callable[..., Facets],
    score: Callable[[str, Facets, float], float],
    query: str,
    name: str,
    description: str,
) -> None:
    assert score(f"{query} qqqq", make_facets(name, description), 0.0) == 0.5


@pytest.mark.parametrize("query", ["PR", "S3", "db"])
def test_words_under_three_letters_are_kept(
    make_facets: Callable[..., Facets], score: Callable[[str, Facets, float], float], query: str
) -> None:
    assert score(query, make_facets(f"list_{query.lower()}"), 0.0) == pytest.approx(0.5 + 0.05 * 3)


def test_only_tools_of_the_best_services_are_answered(
    make_facets: Callable[..., Facets], make_candidates: Callable[..., Candidates]
) -> None:
    tools = [make_facets(f"tool{number}", server=f"server{number % 5}") for number in range(10)]
    cosine = [0.9, 0.8, 0.7, 0.6, 0.5, -0.9, -0.8, -0.7, -0.6, -0.5]
    ranked = rank_boosted("x", make_candidates(tools, cosine))
    assert TOP_K_SERVICES == 3
    assert {item.facets.server for item in ranked} == {"server0", "server1", "server2"}
    assert len(ranked) == 6
    one = rank_boosted("x", make_candidates(tools, cosine), top_k_services=1)
    assert {item.facets.server for item in one} == {"server0"}


def test_services_that_tie_are_taken_by_name(
    make_facets: Callable[..., Facets], make_candidates: Callable[..., Candidates]
) -> None:
    tools = [make_facets("tool", server=server) for server in "edcba"]
    ranked = rank_boosted("x", make_candidates(tools, [0.1] * 5))
    assert {item.facets.server for item in ranked} == {"a", "b", "c"}


def test_the_explanation_names_the_fields(
    make_facets: Callable[..., Facets], make_candidates: Callable[..., Candidates]
) -> None:
    (hit,) = rank_boosted("tokyo hour", make_candidates([make_facets(**TIME)], [0.5]))
    assert hit.parts == {"cosine": 0.5, "boost": 3.5, "matched_fields": ["description", "tags"]}


async def test_the_question_of_the_document_finds_the_time_tool(open_scout: Callable[..., Scout]) -> None:
    rows = [
        {"server": "currenttime", "name": "current_time_by_timezone", "description": "Get current time for a timezone"},
        {"server": "fininfo", "name": "get_stock_aggregates", "description": "Stock market data"},
        {"server": "weather", "name": "get_forecast", "description": "Weather forecast for a location"},
    ]
    async with open_scout(rows) as scout:
        answer = await scout.search_tools("what time is it in Tokyo", ranker="boosted", top_k=1)
    assert answer[0].tool.key == "currenttime__current_time_by_timezone"


async def test_several_tags_can_all_be_asked_for(open_scout: Callable[..., Scout]) -> None:
    rows = [
        {"name": "both", "description": "Figures", "tags": ["finance", "market"]},
        {"name": "one", "description": "Figures", "tags": ["finance"]},
    ]
    async with open_scout(rows) as scout:
        answer = await scout.search_tools("figures", tags=["finance", "market"], ranker="boosted")
    assert [match.tool.name for match in answer] == ["both"]


async def test_real_scores_are_not_all_alike(sample_scout: Scout) -> None:
    answer = await sample_scout.search_tools("list open pull requests on github", ranker="boosted")
    assert (answer[0].score or 0) > 1
    assert len({round(match.score or 0, 6) for match in answer}) > len(answer) / 2
