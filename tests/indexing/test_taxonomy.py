"""What is inferred for a tool that says nothing of its own category, tags and capabilities."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from toolscout.indexing.taxonomy import GENERAL, InferredLabels, describe_category, infer_labels, load_taxonomy

TAXONOMY = load_taxonomy()
PAGE = Path(__file__).parents[2] / "docs" / "enrichment.md"


def _infer(name: str, server: str = "", description: str = "") -> InferredLabels:
    return infer_labels(name=name.split(), server=server.split(), description=description.lower().split())


def test_a_mail_tool_is_communication() -> None:
    inferred = _infer("send email", "gmail", "Send a mail to one or more recipients")
    assert inferred == InferredLabels(category="communication", tags=("email",), capabilities=("send",))


@pytest.mark.parametrize(
    ("name", "server", "description", "category"),
    [
        ("create pull request", "", "open a pull request from a branch", "source-control"),
        ("list issues", "github", "list the issues of a repository", "source-control"),
        ("list issues", "jira", "list the issues of a project", "project-management"),
        ("query", "postgres", "run a select", "databases"),
        ("read file", "", "read a file at a path", "files"),
        ("pods list", "kubernetes", "list pods", "containers"),
        ("create refund", "stripe", "give money back for a payment", "payments"),
        ("get forecast", "weather", "the days to come", "weather"),
        ("geocode", "maps", "turn an address into coordinates", "maps"),
        ("browser click", "playwright", "click an element", "browser"),
        ("create event", "google calendar", "put a meeting in the calendar", "calendar"),
        ("translate text", "", "translate text into a language", "translation"),
        ("add observations", "memory", "add facts to an entity", "memory"),
        ("list buckets", "aws s3", "name the buckets of the account", "cloud"),
    ],
)
def test_a_tool_gets_the_category_that_a_user_expects(name: str, server: str, description: str, category: str) -> None:
    assert _infer(name, server, description).category == category


def test_weak_evidence_gives_general_and_no_tags() -> None:
    assert _infer("get thing", "acme", "returns the thing") == InferredLabels(
        category=GENERAL, tags=(), capabilities=("read",)
    )


def test_a_hint_in_the_name_alone_settles_nothing() -> None:
    assert _infer("get user").category == GENERAL


def test_a_word_of_the_description_alone_settles_nothing() -> None:
    assert _infer("get thing", "acme", "sends the result by email").category == GENERAL


def test_no_words_at_all_give_general() -> None:
    assert _infer("") == InferredLabels(category=GENERAL, tags=(), capabilities=())


def test_a_word_of_the_name_weighs_more_than_one_of_the_server() -> None:
    assert _infer("list invoices", "calendar").category == "payments"


def test_a_word_of_the_server_weighs_more_than_one_of_the_description() -> None:
    assert _infer("list all", "calendar", "see the invoice").category == "calendar"


def test_a_product_as_server_outweighs_a_common_noun_in_the_name() -> None:
    assert _infer("list invoices", "hubspot").category == "commerce"


@pytest.mark.parametrize(("one", "many"), [("task", "tasks"), ("currency", "currencies"), ("inbox", "inboxes")])
def test_plurals_count_as_their_singulars(one: str, many: str) -> None:
    assert _infer(f"get {one}") == _infer(f"get {many}")
    assert _infer(f"get {one}").category != GENERAL


def test_a_word_and_its_plural_count_once() -> None:
    assert _infer("get thing", "", "invoice invoices refund").category == GENERAL


def test_tags_are_those_of_the_category_only_and_sorted() -> None:
    inferred = _infer("geocode place", "maps", "find an email")
    assert inferred.tags == ("geocoding", "maps")
    assert list(inferred.tags) == sorted(inferred.tags)


def test_ties_go_to_the_first_name_whatever_the_order_of_words() -> None:
    assert _infer("weather invoice").category == "payments"
    assert _infer("invoice weather").category == "payments"


def test_the_order_of_words_in_server_and_description_changes_nothing() -> None:
    shuffled = random.Random(7)
    description = ["stock", "prices", "map", "weather", "near", "a", "hotel", "in", "the", "calendar"]
    server = ["travel", "finance", "agenda"]
    expected = infer_labels(name=["find", "stay"], server=server, description=description)
    for _ in range(50):
        shuffled.shuffle(description)
        shuffled.shuffle(server)
        again = infer_labels(name=["find", "stay"], server=server, description=description)
        assert (again.category, again.tags) == (expected.category, expected.tags)


def test_the_first_verb_of_the_name_is_the_capability() -> None:
    assert _infer("slack search list").capabilities == ("search",)


def test_verbs_joined_by_or_are_all_capabilities() -> None:
    assert _infer("create or update file").capabilities == ("create", "update")


def test_a_name_without_a_verb_takes_the_first_verb_of_the_description() -> None:
    assert _infer("air quality", "", "this tool returns the index").capabilities == ("read",)


def test_every_verb_belongs_to_one_capability() -> None:
    verbs = [verb for words in TAXONOMY.capabilities.values() for verb in words]
    assert len(verbs) == len(set(verbs))


def test_every_category_has_a_sentence_and_all_but_general_have_tags() -> None:
    for name, category in TAXONOMY.categories.items():
        assert re.fullmatch(r"[A-Z][^.]*\.", describe_category(name)), name
        assert bool(category.tags) == (name != GENERAL)


def test_a_category_of_somebodys_own_has_a_sentence_too() -> None:
    assert describe_category("Robotics") == "Tools that their authors or the config put under Robotics."


def test_every_category_and_capability_is_on_the_page_about_enrichment() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = {row.split("|")[1].strip().strip("`") for row in page.splitlines() if row.startswith("| `")}
    assert rows == set(TAXONOMY.categories) | set(TAXONOMY.capabilities)


def test_the_page_gives_the_descriptions_tags_and_verbs_of_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, category in TAXONOMY.categories.items():
        tags = ", ".join(sorted(category.tags))
        assert f"| `{name}` | {category.description} | {tags} |" in page
    for name, verbs in TAXONOMY.capabilities.items():
        assert f"| `{name}` | {', '.join(verbs)} |" in page
