"""Random catalogues, users, switches and reaches: what is found is what is described is what can be called.

And nothing is ever another tenant's. The stores are asked as the pipelines ask them: a search takes candidates,
details and calls take the definitions of `tools`, listings take facets, and every count comes from the overview.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalogues import publish
from embedders import HashEmbedder, hash_vector
from guarantees import guarantee
from postgres_server import Databases
from toolscout.models import Caller, Filter, Intent, Scope
from toolscout.policy.rules import Rules
from toolscout.ports import Store
from toolscout.settings import Settings
from toolscout.storage import open_store

pytestmark = guarantee("access:one-predicate", "tenant:isolation")

CASES = {"sqlite": (28, 1), "postgres": (20, 1), "postgres-large": (8, 4)}
"""For each engine: how many catalogues are made up, and of 204 callers one in how many asks. Over 10,000 in all."""

TENANTS, USERS, SERVERS = ("red", "blue"), ("ann", "bob"), ("mail", "maps", "shop", "desk")
NAMES = ("send", "find", "list", "drop", "draw")
KEYS = [f"{server}__{name}" for server in SERVERS for name in NAMES]
CALLERS = [
    (tenant, user, servers)
    for tenant in (*TENANTS, "nobody")
    for user in (None, *USERS, "eve")
    for servers in (None, *(itertools.chain(*(itertools.combinations(SERVERS, count) for count in range(5)))))
]
OWNERS = [(tenant, owner) for tenant in TENANTS for owner in (None, *USERS)]

Owner = tuple[str, str | None]
Catalogue = dict[Owner, dict[tuple[str, str], bool]]
Switches = list[tuple[Owner, str, bool]]

_tools = st.dictionaries(st.tuples(st.sampled_from(SERVERS), st.sampled_from(NAMES)), st.booleans(), max_size=12)
_catalogues = st.dictionaries(st.sampled_from(OWNERS), _tools, min_size=3)
_switches = st.lists(st.tuples(st.sampled_from(OWNERS), st.sampled_from(KEYS), st.booleans()), max_size=5)
_numbers = itertools.count()
_WANTED = "send a mail or draw maps"


@pytest.fixture(scope="module")
async def stores(postgres: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Store]]:
    """Return one store of each engine. Every catalogue in it has its own tenants."""
    file = tmp_path_factory.mktemp("policies") / "catalogue.db"
    made = {
        "sqlite": open_store(Settings(store=f"sqlite:///{file}"), Rules()),
        "postgres": open_store(Settings(store=postgres.fresh()), Rules()),
        "postgres-large": open_store(Settings(store=postgres.fresh(), resident_tools=0), Rules()),
    }
    for store in made.values():
        await store.open()
    yield made
    for store in made.values():
        await store.close()


def _property(engine: str) -> Callable[[Any], Any]:
    bounds = settings(max_examples=CASES[engine][0], deadline=None, suppress_health_check=list(HealthCheck))
    return lambda test: bounds(given(catalogue=_catalogues, switches=_switches)(test))


@_property("sqlite")
async def test_found_is_described_is_callable_with_sqlite(
    stores: dict[str, Store], catalogue: Catalogue, switches: Switches
) -> None:
    await check(stores["sqlite"], "sqlite", catalogue, switches)


@_property("postgres")
async def test_found_is_described_is_callable_with_postgresql(
    stores: dict[str, Store], catalogue: Catalogue, switches: Switches
) -> None:
    await check(stores["postgres"], "postgres", catalogue, switches)


@_property("postgres-large")
async def test_found_is_described_is_callable_in_the_database_itself(
    stores: dict[str, Store], catalogue: Catalogue, switches: Switches
) -> None:
    await check(stores["postgres-large"], "postgres-large", catalogue, switches)


async def check(store: Store, engine: str, catalogue: Catalogue, switches: Switches) -> None:
    """Publish a catalogue under its own tenants and send the requests of all callers."""
    mark = f"-{next(_numbers)}"
    for (tenant, owner), tools in catalogue.items():
        rows = [
            {"name": name, "server": server, "description": _said(tenant, owner, name), "enabled": enabled}
            for (server, name), enabled in tools.items()
        ]
        given_to: dict[str, Any] = {"own": {owner: rows}} if owner else {}
        await publish(store, [] if owner else rows, tenant=tenant + mark, embedder=HashEmbedder(), **given_to)
    turned: dict[tuple[Owner, str], bool] = {}
    for whose, key, enabled in switches:
        if tuple(key.split("__")) in catalogue.get(whose, {}):
            await store.set_enabled(Scope(tenant=whose[0] + mark, owner=whose[1]), [key], enabled)
            turned[whose, key] = enabled
    step = CASES[engine][1]
    for tenant, user, servers in CALLERS[next(_numbers) % step :: step]:
        reach = None if servers is None else frozenset(servers)
        seen = visible(catalogue, turned, tenant, user, reach)
        await ask(store, Caller(tenant=tenant + mark, user=user, servers=reach), tenant, seen)


def visible(
    catalogue: Catalogue,
    turned: dict[tuple[Owner, str], bool],
    tenant: str,
    user: str | None,
    reach: frozenset[str] | None,
) -> dict[str, str | None]:
    """Return the tools that a caller sees, and the owner of each, by the documented rules."""
    seen: dict[str, str | None] = {}
    for owner in (None, user) if user else (None,):
        for (server, name), enabled in catalogue.get((tenant, owner), {}).items():
            key = f"{server}__{name}"
            if turned.get(((tenant, owner), key), enabled) and (owner or reach is None or server in reach):
                seen[key] = owner
    return seen


async def ask(store: Store, caller: Caller, tenant: str, seen: dict[str, str | None]) -> None:
    """Check that listing, search, details, calls, similarity and counts all know exactly what is visible."""
    expected = {key: _said(tenant, owner, key.split("__")[1]) for key, owner in sorted(seen.items())}
    listed = await store.facets(caller, Filter())
    assert [(item.key, item.description) for item in listed] == list(expected.items())
    intent = Intent(text=_WANTED, terms=("send", "draw", "find", "tool"), vector=hash_vector(_WANTED))
    candidates = await store.candidates(caller, Filter(), [intent], 100, "hash-1")
    assert [(item.key, item.description) for item in candidates.facets] == list(expected.items())
    assert candidates.frequency[3] == candidates.visible == len(expected)
    opened = await store.tools(caller, KEYS)
    assert {key: tool.description for key, tool in opened.items()} == expected
    assert {tool.tenant for tool in opened.values()} <= {caller.tenant}
    overview = await store.overview(caller)
    assert (overview.total, overview.servers) == (
        len(expected),
        tuple(sorted({key.split("__")[0] for key in expected})),
    )
    if expected:
        near = await store.similar(caller, next(iter(expected)), 100)
        assert {item.key: item.description for item, _ in near}.items() <= expected.items()


def _said(tenant: str, owner: str | None, name: str) -> str:
    return f"{name} tool of {owner or 'everyone'} in {tenant}"
