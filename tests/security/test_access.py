"""Every answer uses the same access rules, and hidden tools leave no trace."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from catalogues import AccessFunction, many, publish
from embedders import HashEmbedder, hash_vector
from guarantees import guarantee
from toolscout import Caller, Scout, Settings, ToolNotFoundError
from toolscout.errors import to_wire
from toolscout.models import Facets, Filter, Intent
from toolscout.policy.rules import Rules, may_see
from toolscout.ports import Store
from toolscout.storage import open_store

POLICIES = 10_000


def random_policy(caller: Caller, tool: Facets) -> bool:
    """Decide at random, seeded by caller and tool, within the rules."""
    dice = hashlib.blake2b(f"{caller.user} {tool.tenant} {tool.key}".encode(), digest_size=1).digest()[0]
    return may_see(caller, tool) and dice % 3 > 0


@pytest.mark.fuzz
@guarantee("access:one-predicate")
async def test_what_is_listed_is_found_and_opened_under_any_policy() -> None:
    store = open_store(Settings(store="memory:"), AccessFunction(random_policy))
    await store.open()
    for tenant in ("red", "blue"):
        await publish(store, many(8), tenant=tenant, embedder=HashEmbedder())
    everything = sorted(f"many__{row['name']}" for row in many(8))
    intents = [Intent(text="x", terms=("on",), vector=hash_vector("create read update delete one invoice"))]
    seen = set()
    for number in range(POLICIES):
        caller = Caller(tenant=("red", "blue")[number % 2], user=f"user-{number}")
        listed = await store.facets(caller, Filter())
        answer = await store.candidates(caller, Filter(), intents, 50, "hash-1")
        opened = await store.tools(caller, everything)
        keys = [item.key for item in listed]
        assert [item.key for item in answer.facets] == keys == list(opened)
        assert {item.tenant for item in listed} <= {caller.tenant}
        assert answer.visible == len(keys) == (await store.overview(caller)).total
        seen.add(tuple(keys))
    assert len(seen) > 200
    await store.close()


@guarantee("access:one-predicate")
async def test_related_tools_and_counts_ask_the_same_predicate() -> None:
    settings = Settings(store="memory:")
    store = open_store(settings, AccessFunction(random_policy))
    async with Scout(store=store, embedder=HashEmbedder(), settings=settings) as scout:
        await scout.index_tools(many(40, category="office", tags=["paper"]))
        for number in range(25):
            caller = Caller(user=f"user-{number}")
            listed = {match.tool.key for match in await scout.list_tools(caller=caller, page_size=100)}
            answer = await scout.search_tools("invoice", ranker="semantic", top_k=100, threshold=0, caller=caller)
            assert {match.tool.key for match in answer} == listed
            assert {match.tool.key for match in await scout.find_by_tags(["paper"], caller=caller)} == listed
            first = sorted(listed)[0]
            related = await scout.get_related_tools(first, limit=100, caller=caller)
            assert {match.tool.key for match in related} == listed - {first}
            assert [item.count for item in await scout.list_categories(caller=caller)] == [len(listed)]
            assert [item.count for item in await scout.list_tags(caller=caller)] == [len(listed)]


CALLER = Caller(user="ann")
HIDDEN: list[dict[str, Any]] = [
    {
        "name": "launch_missile",
        "server": "many",
        "description": "create one invoice or launch a missile",
        "category": "warfare",
        "tags": ["secret"],
        "related": ["create_invoice_00000"],
    },
    *({"name": f"create_invoice_x{n}", "server": "vault", "description": "create one invoice"} for n in range(30)),
]


async def hide_nothing(store: Store) -> None:
    await publish(store, many(30), embedder=HashEmbedder())


async def hide_in_another_tenant(store: Store) -> None:
    await publish(store, HIDDEN, tenant="other", embedder=HashEmbedder())
    await publish(store, many(30), embedder=HashEmbedder())


async def hide_with_another_user(store: Store) -> None:
    await publish(store, many(30), own={"bob": HIDDEN}, embedder=HashEmbedder())


async def hide_by_switching_off(store: Store) -> None:
    await publish(store, [*many(30), *({**row, "enabled": False} for row in HIDDEN)], embedder=HashEmbedder())


@asynccontextmanager
async def scout_over(hide: Any) -> AsyncIterator[Scout]:
    settings = Settings(store="memory:")
    store = open_store(settings, Rules())
    async with Scout(store=store, embedder=HashEmbedder(), settings=settings) as scout:
        await hide(store)
        yield scout


async def told(scout: Scout) -> list[Any]:
    """Send every kind of request, also for hidden tools, and return the answers without durations."""
    answers: list[Any] = []
    for query in ("create one invoice", "launch a missile", "song", "secret vault"):
        for ranker in ("hybrid", "semantic", "keyword", "fuzzy", "boosted"):
            answer = await scout.search_tools(query, ranker=ranker, explain=True, detail="full", caller=CALLER)
            answers.append((answer.timed(0), len(answer)))
    answers += [
        (await scout.list_tools(caller=CALLER, page_size=7)).timed(0),
        await scout.list_categories(caller=CALLER),
        await scout.list_tags(caller=CALLER),
        (await scout.get_related_tools("many__create_invoice_00000", limit=40, caller=CALLER)).timed(0),
        (await scout.get_tool_details(["many__create_invoice_00000", "many__launch_missile"], caller=CALLER)).timed(0),
    ]
    for key in ("many__launch_missile", "vault__create_invoice_x1", "many__create_invoice_0000"):
        for asked in (scout.get_tool_details(key, caller=CALLER), scout.get_related_tools(key, caller=CALLER)):
            with pytest.raises(ToolNotFoundError) as absent:
                await asked
            answers.append(to_wire(absent.value))
    return answers


@guarantee("access:absent-equals-forbidden")
@pytest.mark.parametrize("hide", [hide_in_another_tenant, hide_with_another_user, hide_by_switching_off])
async def test_hidden_tools_change_no_answer_count_score_or_suggestion(hide: Any) -> None:
    async with scout_over(hide_nothing) as without, scout_over(hide) as with_hidden:
        for expected, answer in zip(await told(without), await told(with_hidden), strict=True):
            assert answer == expected


@guarantee("access:absent-equals-forbidden")
@pytest.mark.parametrize("hide", [hide_in_another_tenant, hide_with_another_user, hide_by_switching_off])
async def test_a_forbidden_tool_and_an_absent_one_are_the_same_error(hide: Any) -> None:
    async with scout_over(hide) as scout:
        errors = []
        for key in ("many__launch_missile", "many__absent_missile"):
            with pytest.raises(ToolNotFoundError) as caught:
                await scout.get_tool_details(key, caller=CALLER)
            errors.append((type(caught.value), str(to_wire(caught.value)).replace(key, "KEY")))
        assert errors[0] == errors[1]
