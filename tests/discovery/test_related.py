"""What goes with a tool: the strongest relation wins and is named, in a fixed order."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from toolscout import InvalidValueError, Scout, ToolNotFoundError
from toolscout.discovery.browse import rank_related
from toolscout.models import Facets


def test_explicit_comes_before_category_before_tags_before_similar(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("tool", category="mail", tags=("post", "letters"), related=("local__named",))
    others = [
        make_facets("similar", category="maps"),
        make_facets("tagged", category="maps", tags=("post",)),
        make_facets("neighbour", category="mail"),
        make_facets("named", category="maps"),
        make_facets("stranger", category="maps"),
    ]
    ranked = rank_related(tool, [tool, *others], {"local__similar": 0.99, "local__named": 0.01})
    assert [(item.facets.name, item.relationship) for item in ranked] == [
        ("named", "explicitly_related"),
        ("neighbour", "same_category"),
        ("tagged", "shared_tags:post"),
        ("similar", "similar"),
    ]


def test_a_later_weaker_relation_never_hides_a_stronger_one(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("tool", category="mail", tags=("post",), related=("local__all",))
    everything = make_facets("all", category="mail", tags=("post",))
    both = make_facets("both", category="mail", tags=("post",))
    ranked = rank_related(tool, [both, everything], {"local__all": 0.5, "local__both": 0.9})
    assert [(item.facets.name, item.relationship) for item in ranked] == [
        ("all", "explicitly_related"),
        ("both", "same_category"),
    ]
    assert ranked[1].matched_tags == ("post",)


def test_a_relation_that_the_other_tool_declares_counts_too(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("tool")
    (hit,) = rank_related(tool, [make_facets("other", related=("local__tool",))], {})
    assert hit.relationship == "explicitly_related"


def test_a_bare_name_means_the_tool_of_the_same_server(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("tool", server="a", related=("other",))
    others = [make_facets("other", server="a"), make_facets("other", server="b")]
    assert [item.facets.key for item in rank_related(tool, others, {})] == ["a__other"]


def test_shared_tags_are_named_in_order_whatever_their_case(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("tool", tags=("Zip", "web", "html"))
    (hit,) = rank_related(tool, [make_facets("other", tags=("zip", "html", "x"))], {})
    assert hit.relationship == "shared_tags:html,zip"


def test_the_general_category_relates_nothing(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("tool", category="general")
    assert rank_related(tool, [make_facets("other", category="general")], {}) == []


def test_the_order_does_not_depend_on_the_order_of_tools(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("tool", category="mail", tags=("a", "b"))
    others = [make_facets(f"t{n}", category=("mail", "maps")[n % 2], tags=("a", "b")[: n % 3]) for n in range(12)]
    near = {"local__t3": 0.4, "local__t4": 0.4, "local__t7": 0.9}
    expected = rank_related(tool, others, near)
    for seed in range(10):
        random.Random(seed).shuffle(others)
        assert rank_related(tool, others, near) == expected


async def test_related_tools_of_the_sample_name_their_relation(sample_scout: Scout) -> None:
    answer = await sample_scout.get_related_tools("github__create_issue", limit=50)
    strength = {"explicitly_related": 3, "same_category": 2, "shared_tags": 1, "similar": 0}
    order = [strength[(match.relationship or "").split(":")[0]] for match in answer]
    assert order == sorted(order, reverse=True)
    assert {match.tool.key for match in answer[:3]} == {
        "github__list_issues",
        "github__update_issue",
        "jira__createIssue",
    }
    assert "github__create_issue" not in {match.tool.key for match in answer}


async def test_five_related_tools_are_shown_unless_told(sample_scout: Scout) -> None:
    assert len(await sample_scout.get_related_tools("github__create_issue")) == 5
    assert len(await sample_scout.get_related_tools("github__create_issue", limit=2)) == 2


async def test_a_limit_that_cannot_be_is_refused(sample_scout: Scout) -> None:
    with pytest.raises(InvalidValueError, match="limit"):
        await sample_scout.get_related_tools("github__create_issue", limit=0)


async def test_a_wrong_key_says_which_was_meant(sample_scout: Scout) -> None:
    with pytest.raises(ToolNotFoundError) as raised:
        await sample_scout.get_related_tools("github__create_isue")
    assert raised.value.suggestions[0] == "github__create_issue"


async def test_a_tool_that_nothing_goes_with_gives_an_empty_answer_without_advice_on_searching(
    open_scout: Callable[..., Scout],
) -> None:
    async with open_scout([{"name": "lonely", "description": "Alone."}]) as scout:
        answer = await scout.get_related_tools("local__lonely")
    assert len(answer) == 0
    assert not answer.suggestions
