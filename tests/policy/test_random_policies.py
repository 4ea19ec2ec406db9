"""10,000 random policies on SQLite and on PostgreSQL: found = listed = opened = explained = called."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from embedders import HashEmbedder, hash_vector
from guarantees import guarantee
from toolscout import Caller, NotAllowedError, Scout, Settings, ToolNotFoundError
from toolscout.models import Filter, Intent, Scope, Server
from toolscout.policy.policy_file import Policy, Rule
from toolscout.policy.rules import Rules
from toolscout.storage import open_store

POLICIES = 10_000
TENANTS, USERS, GROUPS = ("red", "blue"), ("ann", "bob"), ("staff", "guests")
NAMES = ("create_invoice", "read_invoice", "delete_invoice", "send_letter", "read_letter", "pay")
TAGS, CATEGORIES = ("paper", "money"), ("office", "finance")


class Source:
    """A server whose tools say that they were called."""

    def __init__(self, key: str, *, trusted: bool) -> None:
        self.server = Server(key=key, title=key, trusted=trusted)

    async def list_tools(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "description": f"{name} one invoice",
                "tags": [TAGS[number % 2]],
                "category": CATEGORIES[number % 2],
                "annotations": {"readOnlyHint": name.startswith("read")},
            }
            for number, name in enumerate(NAMES)
        ]

    async def call_tool(self, name: str, arguments: Any, **_: Any) -> Mapping[str, Any]:
        return {"content": []}


def random_rule(dice: random.Random, number: int) -> Rule:
    who = [
        "anyone",
        *(f"tenant:{name}" for name in TENANTS),
        *(f"user:{name}" for name in USERS),
        *(f"group:{name}" for name in GROUPS),
    ]

    def some(values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dice.sample(values, dice.randint(1, len(values)))) if dice.random() < 0.35 else ()

    return Rule(
        name=f"rule {number}",
        who=frozenset(dice.sample(who, dice.randint(1, 2))),
        tenant=dice.choice([None, None, *TENANTS]),
        may=dice.choice(["see", "call"]),
        servers=some(("shop", "post", "p*", "?hop")),
        tools=some(("*invoice", "read_*", "post__*", "pay", "[cd]*")),
        tags=frozenset(some(TAGS)),
        categories=frozenset(some(CATEGORIES)),
        read_only=dice.random() < 0.2,
    )


def random_policy(dice: random.Random) -> Policy:
    return Policy(
        allow=tuple(random_rule(dice, number) for number in range(dice.randint(0, 3))),
        deny=tuple(random_rule(dice, number) for number in range(dice.randint(0, 2))),
    )


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty store of each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalogue.db'}"
    fresh: Callable[[], str] = request.getfixturevalue("database")
    return fresh()


@pytest.mark.fuzz
@guarantee("access:one-predicate", "tenant:isolation")
async def test_found_listed_opened_explained_and_called_agree_under_every_policy(url: str) -> None:
    rules, settings, dice = Rules(), Settings(store=url), random.Random(7)
    store = open_store(settings, rules)
    async with Scout(store=store, embedder=HashEmbedder(), settings=settings, rules=rules) as scout:
        for tenant in TENANTS:
            for source in (Source("shop", trusted=True), Source("post", trusted=False)):
                trusted = source.server.trusted
                await scout.index_server_tools(
                    source.server.title, source, trusted=trusted, caller=Caller(tenant=tenant)
                )
        everything = [f"{server}__{name}" for server in ("post", "shop") for name in NAMES]
        intents = [Intent(text="x", terms=("on",), vector=hash_vector("create_invoice one invoice"))]
        seen = set()
        for _ in range(POLICIES):
            rules.apply(random_policy(dice))
            groups = frozenset(dice.sample(GROUPS, dice.randint(0, 2)))
            caller = Caller(tenant=dice.choice(TENANTS), user=dice.choice([None, *USERS]), groups=groups)
            listed = [item.key for item in await store.facets(caller, Filter())]
            candidates = await store.candidates(caller, Filter(), intents, 50, "hash-1")
            opened = await store.tools(caller, everything)
            assert sorted(item.key for item in candidates.facets) == sorted(listed) == sorted(opened)
            assert {tool.tenant for tool in opened.values()} <= {caller.tenant}
            assert (await store.overview(caller)).total == len(listed) == candidates.visible
            key = dice.choice(everything)
            assert (await called(scout, caller, key)) == (key in listed and rules.may_call(caller, opened[key]))
            seen.add(tuple(listed))
        assert len(seen) > 100
        explained = await scout.access.explain(caller, key, "see")
        assert explained.allowed == (key in listed)


class Counting(Rules):
    """Rules that count how often they are evaluated."""

    asked = 0

    def __call__(self, caller: Caller, tool: Any) -> bool:
        self.asked += 1
        return super().__call__(caller, tool)


@pytest.mark.fuzz
@guarantee("access:one-predicate")
async def test_callers_whom_the_policy_does_not_tell_apart_are_judged_once_and_all_others_apart() -> None:
    rules, settings, dice = Counting(), Settings(store="memory:"), random.Random(11)
    people = [
        Caller(tenant=tenant, user=user, groups=frozenset(groups), key=key, servers=servers)
        for tenant in TENANTS
        for user in (None, *USERS)
        for groups in ((), ("staff",), GROUPS)
        for key in (None, "k1")
        for servers in (None, frozenset({"shop"}))
    ]
    store = open_store(settings, rules)
    async with Scout(store=store, embedder=None, settings=settings, rules=rules) as scout:
        for caller in (Caller(tenant="red"), Caller(tenant="blue"), Caller(tenant="red", user="ann")):
            await scout.index([Source("shop", trusted=True), Source("post", trusted=False)], caller=caller)
        for _ in range(100):
            rules.apply(random_policy(dice))
            for caller in dice.sample(people, len(people)):
                tools = await store.stored_tools(Scope(tenant=caller.tenant))
                own = await store.stored_tools(caller.scope) if caller.user else []
                wanted = {tool.key for tool in (*tools, *own) if Rules(rules.policy)(caller, tool)}
                assert {item.key for item in await store.facets(caller, Filter())} == wanted
        rules.apply(Policy(allow=(Rule(name="staff", who=frozenset({"group:staff"})),)))
        before = rules.asked
        for number in range(1_000):
            caller = Caller(tenant="blue", user=f"user {number}", groups=frozenset({"staff"}))
            assert (await store.overview(caller)).total == 2 * len(NAMES)
        assert rules.asked - before == 2 * len(NAMES)


async def called(scout: Scout, caller: Caller, key: str) -> bool:
    try:
        await scout.call_tool(key, {}, caller=caller)
    except (ToolNotFoundError, NotAllowedError):
        return False
    return True


@guarantee("access:fails-closed")
async def test_a_rule_that_cannot_be_evaluated_hides_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    rules, settings = Rules(Policy(allow=(Rule(name="all", who=frozenset({"anyone"})),))), Settings(store="memory:")
    async with Scout(store=open_store(settings, rules), embedder=None, settings=settings, rules=rules) as scout:
        await scout.index([Source("shop", trusted=True)])
        assert len(await scout.list_tools()) == len(NAMES)
        monkeypatch.setattr("toolscout.policy.rules._matches", lambda *_, **__: 1 / 0)
        rules.apply(rules.policy)
        assert len(await scout.list_tools()) == 0
        assert not await called(scout, Caller(), "shop__pay")
