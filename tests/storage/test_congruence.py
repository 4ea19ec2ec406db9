"""All engines, the same corpus, the same queries: the same top 10 with the same scores, to the last bit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from catalogues import NOUNS, VERBS, many
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Caller, Scout, Settings
from toolscout.errors import ToolscoutError, UnknownCategoryError, UnknownServerError, UnknownTagError
from toolscout.policy.rules import Rules
from toolscout.ports import Store
from toolscout.storage import open_store
from toolscout.storage.postgres.store import PostgresStore

pytestmark = guarantee("store:contract", "rank:deterministic")

CALLERS = (
    Caller(),
    Caller(user="ann"),
    Caller(user="ann", servers=frozenset({"many", "odd"})),
    Caller(user="bob", servers=frozenset({"My-Office"})),
)
QUERIES = (
    "create an invoice",
    "delete every photo and then export the calendar",
    "a song or a book",
    "list_ticket_00012",
    "serach for a recipe",
    "sensor",
    "nothing of the kind",
)
NARROWED: tuple[dict[str, Any], ...] = (
    {},
    {"category": "Paper"},
    {"tags": ["even", "rare"], "match": "any"},
    {"tags": ["even", "rare"], "match": "all"},
    {"servers": ["My-Office"]},
    {"servers": ["My Office", "odd"], "tags": ["rare"]},
)


def corpus() -> list[dict[str, Any]]:
    """Return tools of several servers: some are alike, some are disabled, some have labels."""
    rows = many(160)
    rows += many(80, server="My Office", category="paper", tags=["even"])
    rows += [{**row, "server": "odd", "tags": ["rare", "even"][: 1 + at % 2]} for at, row in enumerate(many(40))]
    rows += [{"name": f"{verb}_{noun}", "server": "short"} for verb in VERBS[:3] for noun in NOUNS[:3]]
    rows += [{**row, "server": "off", "enabled": False} for row in many(12)]
    return rows


def own() -> list[dict[str, Any]]:
    """Return tools of one user. Half of them hide a shared tool with the same key."""
    return [{**row, "description": f"{row['description']} of mine"} for row in many(30)[::2]] + many(15, server="mine")


@asynccontextmanager
async def filled(url: str, **options: Any) -> AsyncIterator[tuple[Scout, Store]]:
    rules, settings = Rules(), Settings(store=url, **options)
    store = open_store(settings, rules)
    async with Scout(store=store, embedder=HashEmbedder(), settings=settings, rules=rules) as scout:
        await scout.index_tools(corpus())
        await scout.index_tools(own(), caller=Caller(user="ann"))
        await scout.index_tools(many(200), caller=Caller(tenant="other"))
        await scout.set_enabled("many__create_invoice_00000", False)
        await scout.set_enabled("mine__read_invoice_00001", False, caller=Caller(user="ann"))
        yield scout, store


async def all_answers(
    scout: Scout, store: Store, rankers: Sequence[str] = ("hybrid", "semantic", "keyword")
) -> dict[str, Any]:
    """Send every query as every caller, and return keys, scores and counts."""
    answers: dict[str, Any] = {}
    for number, caller in enumerate(CALLERS):
        for at, narrow in enumerate(NARROWED):
            for ranker in rankers[: 1 if at else None]:
                try:
                    results = await scout.search_tools(
                        list(QUERIES), ranker=ranker, caller=caller, threshold=0, **narrow
                    )
                except ToolscoutError as error:
                    answers[f"{number} {at} {ranker} refused"] = (type(error), error.message, error.hint)
                    continue
                for query, answer in zip(QUERIES, results, strict=True):
                    answers[f"{number} {at} {ranker} {query}"] = (
                        [(match.tool.key, match.tool.owner, match.score) for match in answer],
                        answer.metadata.total,
                        answer.metadata.matched,
                    )
        overview = await scout.overview(caller=caller)
        answers[f"{number} overview"] = (overview.total, overview.tokens, overview.categories, overview.servers)
        answers[f"{number} tags"] = await scout.list_tags(caller=caller)
        answers[f"{number} vocabulary"] = list(await store.vocabulary(caller))
        for key in ("odd__read_invoice_00001", "mine__update_invoice_00002"):
            near = await store.similar(caller, key, 10)
            answers[f"{number} near {key}"] = [(item.key, item.owner, score) for item, score in near]
    return answers


@pytest.fixture(scope="module")
async def expected() -> dict[str, Any]:
    async with filled("memory:") as (scout, store):
        return await all_answers(scout, store)


@pytest.mark.fuzz
def test_the_answers_are_worth_comparing(expected: dict[str, Any]) -> None:
    rankings = [value[0] for name, value in expected.items() if "hybrid" in name and "refused" not in name]
    assert sum(len(best) == 10 for best in rankings) > 50
    assert len({str(best) for best in rankings}) > 60
    assert {value[0] for name, value in expected.items() if "refused" in name} == {
        UnknownCategoryError,
        UnknownServerError,
        UnknownTagError,
    }


@pytest.mark.parametrize("resident_tools", [50_000, 0], ids=["postgres", "postgres-large"])
async def test_postgresql_gives_what_memory_gives(
    expected: dict[str, Any], database: Callable[[], str], resident_tools: int
) -> None:
    async with filled(database(), resident_tools=resident_tools) as (scout, store):
        answers = await all_answers(scout, store)
        assert isinstance(store, PostgresStore)
        assert ("local" in store.tenants_in_database) == (resident_tools == 0)
    assert {name: value for name, value in answers.items() if value != expected[name]} == {}


async def test_a_tenant_that_grows_and_shrinks_moves_there_and_back(
    expected: dict[str, Any], database: Callable[[], str]
) -> None:
    async with filled(database(), resident_tools=350) as (scout, store):
        assert isinstance(store, PostgresStore)
        assert "local" not in store.tenants_in_database
        await scout.index_tools(many(100, server="more"))
        assert "local" in store.tenants_in_database
        assert (await scout.overview()).total == expected["0 overview"][0] + 100
        await scout.remove_server("more")
        assert "local" in store.tenants_in_database
        answer = await scout.search_tools(QUERIES[0], threshold=0)
        assert [(match.tool.key, match.tool.owner, match.score) for match in answer] == expected[
            f"0 0 hybrid {QUERIES[0]}"
        ][0]
        answers = await all_answers(scout, store, ())
        assert {name: value for name, value in answers.items() if value != expected[name]} == {}
        await scout.index_tools([{"name": "last", "server": "many"}])
        assert "local" not in store.tenants_in_database
        assert (await scout.overview()).total == expected["0 overview"][0] - 158
