"""`keyword`, document 001: its points, its published example, and its traps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolscout.discovery.rankers.keyword import rank_keyword
from toolscout.models import Facets

SCRAPE = {
    "name": "myapp_scrape_url",
    "description": "Scrape content from a URL",
    "category": "scraping",
    "tags": ("web", "html", "http"),
}
LINKS = {
    "name": "myapp_extract_links",
    "description": "Extract all links from HTML content",
    "category": "parsing",
    "tags": ("html", "links", "parsing"),
}


def _score(query: str, tool: Facets) -> float:
    ranked = rank_keyword(query, [tool])
    return ranked[0].score if ranked else 0.0


@pytest.mark.parametrize(
    ("query", "fields", "points"),
    [
        ("scrape", SCRAPE, 50 + 20),  # the example of the document
        ("myapp_scrape_url", SCRAPE, 100 + 50),
        ("MyApp_Scrape_URL", SCRAPE, 100 + 50),
        ("scraping", SCRAPE, 15),
        ("html", SCRAPE, 10),
        ("html", LINKS, 20 + 10),
        ("links", LINKS, 50 + 20 + 10),
        ("parsing", LINKS, 15 + 10),
        ("email", LINKS, 0),
    ],
)
def test_the_points_of_the_document_add_up(
    make_facets: Callable[..., Facets], query: str, fields: dict[str, object], points: int
) -> None:
    assert _score(query, make_facets(**fields)) == points


def test_each_matching_tag_counts(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("tool", tags=("video", "video-editing", "videos", "sound"))
    assert _score("video", tool) == 3 * 10


def test_a_request_gets_the_mean_of_its_words(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets(**SCRAPE)
    assert _score("scrape html", tool) == round((70 + 10) / 2)
    assert _score("scrape nothing", tool) == round((70 + 0) / 2)


def test_the_whole_query_as_one_phrase_beats_the_mean_of_its_words(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("fetch_page", "Fetch the page")
    assert _score("fetch page", tool) == 100 + 50


def test_points_are_whole_numbers(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets(**SCRAPE)
    assert all(_score(query, tool) % 1 == 0 for query in ("scrape a b c", "html url x", "web http content of"))


def test_a_match_too_small_to_round_up_still_counts(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets("tool", tags=("web",))
    words = "web " + " ".join(f"word{number}" for number in range(30))
    assert _score(words, tool) == 1


def test_equal_points_put_more_whole_words_first_and_then_the_key(make_facets: Callable[..., Facets]) -> None:
    inside = make_facets("a", "Some emailing thing")
    whole = make_facets("c", "Some email thing")
    also_whole = make_facets("b", "One email thing")
    ranked = rank_keyword("email", [inside, whole, also_whole])
    assert {item.score for item in ranked} == {20}
    assert [item.facets.name for item in ranked] == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("query", "name", "description"),
    [
        ("an", "manage_users", "Manage users"),
        ("add", "address_book", "Look up an address"),
        ("pr", "print_report", "Print the spreadsheet"),
        ("is", "list_issues", "List this history"),
        ("log", "blog_search", "Search a blog"),
    ],
)
def test_short_words_are_not_found_inside_others(
    make_facets: Callable[..., Facets], query: str, name: str, description: str
) -> None:
    assert _score(query, make_facets(name, description)) == 0


@pytest.mark.parametrize(
    ("query", "name", "description"),
    [
        ("PR", "merge_pr", ""),
        ("PRs", "list_pr", ""),
        ("pr", "review", "Review open PRs"),
        ("S3", "upload", "Upload a file to S3"),
        ("s3", "listS3Buckets", ""),
        ("add", "contacts", "Adds a contact"),
        ("tag", "tool", "List tags"),
        ("DB", "open_db", ""),
    ],
)
def test_short_words_are_kept_and_found_as_words(
    make_facets: Callable[..., Facets], query: str, name: str, description: str
) -> None:
    assert _score(query, make_facets(name, description)) > 0


def test_stop_words_do_not_dilute_a_request(make_facets: Callable[..., Facets]) -> None:
    tool = make_facets(**SCRAPE)
    assert _score("please can you scrape the", tool) == _score("scrape", tool)


def test_a_request_is_not_one_long_substring(make_facets: Callable[..., Facets]) -> None:
    page = make_facets("fetch", "Scrape a web page")
    other = make_facets("other", "Send a letter")
    assert [item.facets.name for item in rank_keyword("scrape webpage", [other, page])] == ["fetch"]
    assert [item.facets.name for item in rank_keyword("scrape a web page", [other, page])] == ["fetch"]


@pytest.mark.parametrize(
    ("query", "description"),
    [
        ("天气", "查询城市的天气预报"),
        ("café", "Find a café nearby"),
        ("cafe", "Find a CAFÉ nearby"),
        ("какой", "Узнать, какой сегодня день"),
        ("חיפוש", "כלי חיפוש"),
    ],
)
def test_words_of_other_scripts_are_found(make_facets: Callable[..., Facets], query: str, description: str) -> None:
    assert _score(query, make_facets("tool", description)) > 0


def test_the_explanation_names_the_words_and_their_points(make_facets: Callable[..., Facets]) -> None:
    (hit,) = rank_keyword("scrape html now please", [make_facets(**SCRAPE)])
    assert hit.parts == {"phrase": 0, "words": {"scrape": 70, "html": 10}, "matched_words": ["scrape", "html"]}
