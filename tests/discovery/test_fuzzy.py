"""`fuzzy`, document 002: its tiers, their order, and its traps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolscout.discovery.rankers.fuzzy import SIMILAR_FROM, SIMILAR_SCALE, rank_fuzzy
from toolscout.models import Facets

EMAIL = {
    "name": "send_email",
    "description": "Deliver a letter to a recipient",
    "keywords": ("mailbox", "communication", "smtp"),
}


def _score(query: str, tool: Facets) -> float:
    ranked = rank_fuzzy(query, [tool])
    return ranked[0].score if ranked else 0.0


@pytest.mark.parametrize(
    ("query", "tier"),
    [
        ("send_email", 1.0),
        ("send email", 1.0),
        ("Send_Email", 1.0),
        ("send", 0.9),
        ("send_em", 0.9),
        ("smtp", 0.85),
        ("email", 0.8),
        ("communicat", 0.7),
        ("letter", 0.6),
        ("recip", 0.5),
    ],
)
def test_each_tier_of_the_document_has_its_score(make_facets: Callable[..., Facets], query: str, tier: float) -> None:
    assert _score(query, make_facets(**EMAIL)) == tier


def test_tags_count_as_keywords(make_facets: Callable[..., Facets]) -> None:
    assert _score("billing", make_facets("tool", tags=("billing",))) == 0.85


def test_a_request_gets_the_mean_of_its_words(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets(**EMAIL)
    assert _score("send letter", tool) == pytest.approx((0.9 + 0.6) / 2)
    assert _score("send qqqqqq", tool) == pytest.approx(0.9 / 2)


def test_the_best_tier_of_a_word_wins_over_the_sum(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("email", "email email", keywords=("email",))
    assert _score("email", tool) == 1.0


@pytest.mark.parametrize("query", ["sned_email", "emaul", "emaill", "sendd"])
def test_a_misspelt_word_is_found_below_every_tier(make_facets: Callable[..., Facets], query: str) -> None:
    score = _score(query, make_facets("send_email"))
    assert 0 < score <= 0.5


def test_the_similarity_is_scaled(make_facets: Callable[..., Facets]) -> None:
    assert _score("calendxr", make_facets("calendar")) == pytest.approx(SIMILAR_SCALE * 7 / 8)


def test_what_is_less_alike_than_the_cutoff_is_not_found(make_facets: Callable[..., Facets]) -> None:
    assert SIMILAR_FROM > 4 / 8
    assert _score("calexxxx", make_facets("calendar")) == 0


@pytest.mark.parametrize(
    ("query", "name", "description"),
    [
        ("an", "manage_users", "Manage users"),
        ("add", "address_book", "Look up an address"),
        ("a", "archive", "Archive mail"),
        ("pr", "print_report", "Print the spreadsheet"),
    ],
)
def test_short_words_are_not_found_inside_others(
    make_facets: Callable[..., Facets], query: str, name: str, description: str
) -> None:
    assert _score(query, make_facets(name, description)) == 0


@pytest.mark.parametrize(
    ("query", "name", "tier"), [("PR", "pr_merge", 0.9), ("PR", "merge_pr", 0.8), ("s3", "list_S3_buckets", 0.8)]
)
def test_short_words_are_kept_and_found_as_words(
    make_facets: Callable[..., Facets], query: str, name: str, tier: float
) -> None:
    assert _score(query, make_facets(name)) == tier


def test_stop_words_are_not_counted(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets(**EMAIL)
    assert _score("please send an email to the", tool) == _score("email send", tool)


def test_a_request_of_stop_words_alone_is_still_a_request(make_facets: Callable[..., Facets]) -> None:
    assert _score("who am i", make_facets("who_am_i")) == 1.0


def test_a_request_is_not_one_long_substring(make_facets: Callable[..., Facets]) -> None:
    page = make_facets("fetch", "Scrape a web page")
    assert _score("scrape webpage", page) > 0
    assert _score("scrape a web page", page) == pytest.approx(0.6)


def test_a_word_in_a_script_without_spaces_is_found_inside_a_run(make_facets: Callable[..., Facets]) -> None:
    assert _score("天气", make_facets("tool", "查询城市的天气预报")) == 0.5


def test_the_explanation_says_what_each_word_reached(make_facets: Callable[..., Facets]) -> None:
    (hit,) = rank_fuzzy("send letter zzzz", [make_facets(**EMAIL)])
    assert hit.parts == {
        "words": {"send": 0.9, "letter": 0.6, "zzzz": 0.0},
        "matched_words": ["send", "letter"],
    }
