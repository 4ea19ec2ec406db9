"""Requests with several needs: each is served before any is served twice over, and a server's tools stay together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from toolscout.discovery.diversity import cover_clauses
from toolscout.discovery.request import UnderstoodRequest
from toolscout.models import Candidates, Facets, Intent, Ranked, Ranking

MakeFacets = Callable[..., Facets]
WHOLE = Intent(text="mail her and book a room", terms=())
CLAUSES = (Intent(text="mail her", terms=("mail",)), Intent(text="book a room", terms=("book",)))
NEEDS = UnderstoodRequest(text=WHOLE.text, whole=WHOLE, clauses=CLAUSES)


@pytest.fixture
def make(make_facets: MakeFacets, make_candidates: Callable[..., Candidates]) -> Callable[..., tuple[Any, Any]]:
    """Give what builds a ranking and its candidates from (name, server, score, fit of the first need)."""

    def made(*hits: tuple[str, str, float, float]) -> tuple[Ranking, Candidates]:
        facets = [make_facets(name, server=server) for name, server, _, _ in hits]
        cosine = np.array([[0.5] * len(hits), [h[3] for h in hits], [1 - h[3] for h in hits]], dtype=np.float32)
        candidates = replace(make_candidates(facets, [0.0] * len(hits)), cosine=cosine)
        best = [Ranked(facets=item, score=hit[2]) for item, hit in zip(facets, hits, strict=True)]
        return Ranking(best=best, matched=len(best)), candidates

    return made


def _names(ranking: Ranking) -> list[str]:
    return [item.facets.name for item in ranking.best]


def test_a_need_that_is_served_gives_way_to_one_that_is_not(make: Callable[..., Any]) -> None:
    ranking, candidates = make(
        ("send", "a", 0.9, 0.9), ("draft", "b", 0.5, 0.9), ("reply", "c", 0.48, 0.9), ("book", "d", 0.45, 0.1)
    )
    assert _names(cover_clauses(ranking, NEEDS, candidates)) == ["send", "book", "draft", "reply"]


def test_the_tools_of_the_best_server_go_together(make: Callable[..., Any]) -> None:
    ranking, candidates = make(("send", "a", 0.9, 0.9), ("book", "b", 0.5, 0.1), ("reserve", "a", 0.45, 0.1))
    assert _names(cover_clauses(ranking, NEEDS, candidates)) == ["send", "reserve", "book"]


def test_tools_without_a_server_are_not_held_together(make: Callable[..., Any]) -> None:
    ranking, candidates = make(("send", "local", 0.9, 0.9), ("book", "local", 0.5, 0.1), ("reserve", "local", 0.4, 0.1))
    assert _names(cover_clauses(ranking, NEEDS, candidates)) == ["send", "book", "reserve"]


def test_scores_stay_with_the_places(make: Callable[..., Any]) -> None:
    ranking, candidates = make(("send", "a", 0.9, 0.9), ("draft", "b", 0.5, 0.9), ("book", "c", 0.45, 0.1))
    found = cover_clauses(ranking, NEEDS, candidates)
    assert [item.score for item in found.best] == [0.9, 0.5, 0.45]
    assert found.matched == ranking.matched


@pytest.mark.parametrize("original", [None, CLAUSES[0]])
def test_one_need_or_a_translation_changes_nothing(make: Callable[..., Any], original: Intent | None) -> None:
    request = UnderstoodRequest(text=WHOLE.text, whole=WHOLE, original=original)
    ranking, candidates = make(("send", "a", 0.9, 0.9), ("draft", "b", 0.5, 0.9), ("book", "c", 0.45, 0.1))
    assert cover_clauses(ranking, request, candidates) == ranking


def test_needs_are_told_by_words_where_there_are_no_vectors(make: Callable[..., Any]) -> None:
    ranking, candidates = make(("send", "a", 0.9, 0), ("draft", "b", 0.5, 0), ("book", "c", 0.48, 0))
    words = np.array([[0.9, 0.8, 0.0], [0.0, 0.0, 0.7]], dtype=np.float32)
    candidates = replace(candidates, with_vectors=False, terms=("mail", "book"), impact=words)
    assert _names(cover_clauses(ranking, NEEDS, candidates)) == ["send", "book", "draft"]


def test_an_explained_hit_says_that_it_was_moved(make: Callable[..., Any]) -> None:
    ranking, candidates = make(("send", "a", 0.9, 0.9), ("draft", "b", 0.5, 0.9), ("book", "c", 0.48, 0.1))
    explained = replace(ranking, best=[replace(item, parts={"cosine": 0.5}) for item in ranking.best])
    assert ["moved" in item.parts for item in cover_clauses(explained, NEEDS, candidates).best] == [False, True, True]
