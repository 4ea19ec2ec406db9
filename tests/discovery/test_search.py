"""Searching: one query or several, narrowed, limited, cut off at a score, and refused with advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from toolscout import (
    Answer,
    EmptyQueryError,
    InvalidValueError,
    Scout,
    Settings,
    UnknownCategoryError,
    UnknownRankerError,
    UnknownServerError,
    UnknownTagError,
)

RANKERS = ("hybrid", "semantic", "keyword", "fuzzy", "boosted")
ROWS: list[dict[str, Any]] = [
    {"server": "a", "name": "fetch_page", "description": "Fetch a page.", "category": "Web", "tags": ["HTML", "web"]},
    {"server": "a", "name": "fetch_feed", "description": "Fetch a feed.", "category": "Web", "tags": ["web"]},
    {"server": "b b", "name": "fetch_file", "description": "Fetch a file.", "category": "files", "tags": ["html"]},
    {"server": "c", "name": "fetch_row", "description": "Fetch a row.", "category": "files", "tags": []},
]


def _keys(answer: Answer) -> set[str]:
    return {match.tool.key for match in answer}


def _bare(answer: Answer) -> Answer:
    return answer.timed(0)


@pytest.mark.parametrize("ranker", RANKERS)
async def test_several_queries_in_one_call_answer_as_each_alone(sample_scout: Scout, ranker: str) -> None:
    queries = ["send an email", "list pull requests", "will it rain tomorrow?", "send an email"]
    together = await sample_scout.search_tools(queries, ranker=ranker, explain=True)
    alone = [await sample_scout.search_tools(query, ranker=ranker, explain=True) for query in queries]
    assert [_bare(answer) for answer in together] == [_bare(answer) for answer in alone]


@pytest.mark.parametrize("ranker", RANKERS)
async def test_best_comes_first_and_ties_fall_by_key(sample_scout: Scout, ranker: str) -> None:
    answer = await sample_scout.search_tools("list things", ranker=ranker, top_k=50, threshold=0)
    scores = [match.score or 0 for match in answer]
    assert scores == sorted(scores, reverse=True)
    if ranker != "keyword":  # whole words come before keys there
        places = [(-(match.score or 0), match.tool.key) for match in answer]
        assert places == sorted(places)


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"tags": ["html"]}, {"fetch_page", "fetch_file"}),
        ({"tags": ["html", "WEB"]}, {"fetch_page", "fetch_file", "fetch_feed"}),
        ({"tags": ["html", "web"], "match": "all"}, {"fetch_page"}),
        ({"tags": ["html", "nobody has this"]}, {"fetch_page", "fetch_file"}),
        ({"category": "web"}, {"fetch_page", "fetch_feed"}),
        ({"servers": ["a"]}, {"fetch_page", "fetch_feed"}),
        ({"servers": ["b b", "c"]}, {"fetch_file", "fetch_row"}),
        ({"servers": ["b-b"]}, {"fetch_file"}),
        ({"servers": ["a"], "tags": ["html"], "category": "WEB"}, {"fetch_page"}),
    ],
)
async def test_a_filter_keeps_exactly_what_it_says(
    open_scout: Callable[..., Scout], ranker: str, options: dict[str, Any], names: set[str]
) -> None:
    if ranker == "boosted" and len(options.get("tags", ())) > 1:
        options = {**options, "tags": ["html", "web"]}  # the registry's finder asks for all of the tags
        names = {"fetch_page"}
    async with open_scout(ROWS) as scout:
        answer = await scout.search_tools("fetch", ranker=ranker, threshold=0, **options)
    assert {match.tool.name for match in answer} == names


async def test_filters_work_inside_the_search_and_not_after_it(open_scout: Callable[..., Scout]) -> None:
    many = [{"server": "many", "name": f"send_mail_{n}", "description": "Send a mail."} for n in range(300)]
    rare = {"server": "rare", "name": "relay", "description": "Pass a letter on.", "tags": ["rare"]}
    async with open_scout([*many, rare]) as scout:
        for ranker in ("hybrid", "semantic", "boosted"):
            answer = await scout.search_tools("send a mail", tags=["rare"], ranker=ranker, threshold=0)
            assert _keys(answer) == {"rare__relay"}


async def test_a_threshold_is_on_the_rankers_own_score(sample_scout: Scout) -> None:
    for ranker, least in (("keyword", 60.0), ("fuzzy", 0.7), ("semantic", 0.4), ("boosted", 1.0), ("hybrid", 0.3)):
        answer = await sample_scout.search_tools("send email", ranker=ranker, threshold=least, top_k=50)
        everything = await sample_scout.search_tools("send email", ranker=ranker, threshold=0, top_k=200)
        assert 0 < len(answer) < len(everything)
        assert _keys(answer) == {match.tool.key for match in everything if (match.score or 0) >= least}


async def test_ten_hits_come_unless_told(sample_scout: Scout) -> None:
    assert len(await sample_scout.search_tools("list", threshold=0)) == 10
    answer = await sample_scout.search_tools("list", threshold=0, top_k=3)
    assert (len(answer), answer.metadata.returned) == (3, 3)
    assert answer.metadata.matched > 3


async def test_matched_tags_are_told_with_every_ranker(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        for ranker in RANKERS:
            answer = await scout.search_tools("fetch page", tags=["web", "html"], ranker=ranker, threshold=0)
            told = {match.tool.name: match.matched_tags for match in answer}
            assert told["fetch_page"] == ("HTML", "web")


@pytest.mark.parametrize("ranker", RANKERS)
async def test_explain_gives_the_parts_of_each_score_and_only_when_asked(sample_scout: Scout, ranker: str) -> None:
    answer = await sample_scout.search_tools("send an email", ranker=ranker, explain=True)
    assert all(match.explain for match in answer)
    plain = await sample_scout.search_tools("send an email", ranker=ranker)
    assert all(match.explain is None for match in plain)


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
async def test_an_empty_query_says_what_to_do(sample_scout: Scout, query: str) -> None:
    with pytest.raises(EmptyQueryError) as raised:
        await sample_scout.search_tools(query)
    assert "send an email" in raised.value.hint
    assert "communication" in raised.value.categories


async def test_no_query_at_all_is_an_empty_query(sample_scout: Scout) -> None:
    with pytest.raises(EmptyQueryError):
        await sample_scout.search_tools([])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"top_k": 0}, "limit"),
        ({"top_k": -1}, "limit"),
        ({"top_k": 201}, "limit"),
        ({"top_k": 2.5}, "limit"),
        ({"top_k": True}, "limit"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"threshold": "high"}, "threshold"),
        ({"detail": "huge"}, "detail"),
        ({"match": "some"}, "match"),
    ],
)
async def test_a_value_out_of_range_is_named_with_what_would_do(
    sample_scout: Scout, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidValueError, match=said) as raised:
        await sample_scout.search_tools("send an email", **options)
    assert raised.value.hint


async def test_a_query_that_is_no_text_is_refused(sample_scout: Scout) -> None:
    with pytest.raises(InvalidValueError, match="text"):
        await sample_scout.search_tools([5])  # type: ignore[list-item]


async def test_a_query_or_a_number_of_queries_beyond_the_bounds_is_refused(sample_scout: Scout) -> None:
    with pytest.raises(InvalidValueError, match="characters"):
        await sample_scout.search_tools("x" * 100_001)
    with pytest.raises(InvalidValueError, match="17 queries"):
        await sample_scout.search_tools(["mail"] * 17)


async def test_an_unknown_ranker_is_answered_with_the_known_ones(sample_scout: Scout) -> None:
    with pytest.raises(UnknownRankerError) as raised:
        await sample_scout.search_tools("mail", ranker="keywrd")
    assert raised.value.suggestions == ("keyword",)
    assert all(ranker in raised.value.hint for ranker in RANKERS)


async def test_an_unknown_category_is_answered_with_the_available_ones(sample_scout: Scout) -> None:
    with pytest.raises(UnknownCategoryError) as raised:
        await sample_scout.search_tools("mail", category="comunication")
    assert raised.value.suggestions[0] == "communication"
    assert "payments" in raised.value.categories


@pytest.mark.parametrize("ranker", RANKERS)
async def test_an_unknown_server_or_tag_is_told_with_the_nearest(open_scout: Callable[..., Scout], ranker: str) -> None:
    async with open_scout(ROWS) as scout:
        for servers in (["bb"], ["a", "bb"]):
            with pytest.raises(UnknownServerError, match="'bb'") as raised:
                await scout.search_tools("fetch", servers=servers, ranker=ranker)
            assert raised.value.suggestions[0] == "b-b"
            assert raised.value.hint.endswith("the servers: a, b-b, c")
        for tags in (["htlm"], ["web", "htlm"]):
            with pytest.raises(UnknownTagError, match="'htlm'") as untagged:
                await scout.search_tools("fetch", tags=tags, match="all", ranker=ranker)
            assert untagged.value.suggestions[0] == "html"
        known = await scout.search_tools("fetch", tags=["html"], servers=["c"], match="all", ranker=ranker)
        assert len(known) == 0
        with pytest.raises(UnknownServerError):
            await scout.list_tools(server="bb")
        with pytest.raises(UnknownTagError):
            await scout.find_by_tags(["htlm"])


async def test_a_refused_request_loses_nothing(open_scout: Callable[..., Scout]) -> None:
    async with open_scout(ROWS) as scout:
        before = _bare(await scout.search_tools("fetch"))
        with pytest.raises(InvalidValueError):
            await scout.search_tools("fetch", top_k=-5)
        assert _bare(await scout.search_tools("fetch")) == before


async def test_the_ranker_of_the_settings_is_the_default(open_scout: Callable[..., Scout]) -> None:
    settings = replace(Settings(), ranker="fuzzy")
    async with open_scout(ROWS, settings=settings) as scout:
        assert (await scout.search_tools("fetch")).metadata.ranker == "fuzzy"
        assert (await scout.search_tools("fetch", ranker="keyword")).metadata.ranker == "keyword"
