"""Row-level security: even if a query names no tenant, the role of the store sees the rows of one tenant only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest

from catalogues import keys, look_for, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from postgres_server import Databases
from toolscout.indexing.trust import write_pin
from toolscout.models import Caller, Pin, Retention, Scope
from toolscout.policy.rules import Rules
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.postgres.encoding import any_of, term_lexeme
from toolscout.storage.postgres.schema import ROLE

pytestmark = guarantee("tenant:isolation")

TENANT_TABLES = (
    "tenants",
    "scopes",
    "servers",
    "tools",
    "switches",
    "records",
    "gone_pins",
    "search_rows",
    "term_counts",
    "summaries",
)
SHARED = {"name": "paint", "server": "studio", "description": "Paint a wall"}
SAMPLES = {
    "text": "x",
    "text[]": "{x}",
    "bytea[]": "{x}",
    "bigint": "0",
    "double precision": "1",
    "interval": "1 day",
    "tsquery": "x",
}


@pytest.fixture(scope="module")
async def url(postgres: Databases) -> str:
    """Return a database of two tenants that have tools of the same names and share one text."""
    address = postgres.fresh()
    store = open_store(Settings(store=address, resident_tools=0), Rules())
    await store.open()
    for tenant in ("red", "blue", "red"):
        only = {"name": f"only_{tenant}", "server": "studio", "description": f"The {tenant} secret"}
        rows = [SHARED, only, *many(5, server=f"at-{tenant}")]
        await publish(store, rows, tenant=tenant, own={"ann": [SHARED, only]}, embedder=HashEmbedder())
        await store.set_enabled(Scope(tenant=tenant), ["studio__paint"], tenant == "red")
        pins = [Pin(key=f"studio__{name}", fingerprint="f") for name in ("paint", "gone")]
        await store.put_records([write_pin(Scope(tenant=tenant), pin) for pin in pins])
    await store.clean_up(Retention())
    await store.lease("index:red:studio", "one", 60)
    await store.close()
    return address


@pytest.fixture
async def ask(url: str) -> AsyncIterator[Callable[..., list[Any]]]:
    """Return a function that runs SQL in the role of the store, for a tenant or for none."""
    with psycopg.connect(url, autocommit=True) as db:

        def ask(tenant: str | None, query: str, *values: Any) -> list[Any]:
            with db.transaction():
                db.execute(f"SET LOCAL ROLE {ROLE}")
                db.execute("SET LOCAL search_path = toolscout, public")
                if tenant is not None:
                    db.execute("SELECT set_config('toolscout.tenant', %s, true)", (tenant,))
                found = db.execute(query, values)
                return found.fetchall() if found.description else [(found.rowcount,)]

        yield ask


@pytest.mark.parametrize("table", TENANT_TABLES)
def test_every_table_shows_one_tenant(ask: Callable[..., list[Any]], table: str) -> None:
    for tenant in ("red", "blue"):
        rows = ask(tenant, f"SELECT DISTINCT tenant FROM {table}")
        assert rows == [(tenant,)]
    for nobody in (None, "", "green", "red' OR true --"):
        assert ask(nobody, f"SELECT * FROM {table}") == []


def test_every_table_with_a_tenant_is_tested_here(ask: Callable[..., list[Any]], url: str) -> None:
    with psycopg.connect(url) as db:
        rows = db.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'toolscout' "
            "AND column_name = 'tenant'"
        ).fetchall()
    assert {name for (name,) in rows} == set(TENANT_TABLES)


def test_a_vector_is_reached_through_a_tool_of_the_tenant_only(ask: Callable[..., list[Any]], url: str) -> None:
    hashes = "SELECT DISTINCT text_hash FROM toolscout.tools WHERE tenant = %s"
    with psycopg.connect(url) as db:
        texts = {tenant: set(db.execute(hashes, (tenant,)).fetchall()) for tenant in ("red", "blue")}
    assert texts["red"] & texts["blue"]
    for tenant in ("red", "blue"):
        hashes_of_tenant = set(ask(tenant, "SELECT text_hash FROM vectors"))
        assert hashes_of_tenant == texts[tenant]
        assert hashes_of_tenant < texts["red"] | texts["blue"]
    assert ask(None, "SELECT * FROM vectors") == []


def test_functions_that_bypass_row_security_check_the_tenant(ask: Callable[..., list[Any]]) -> None:
    query = any_of([term_lexeme("red", "paint"), term_lexeme("blue", "paint"), term_lexeme("blue", "secret")])
    counts = {
        tenant: len(ask(tenant, "SELECT holding(%s::tsquery, '')", query)) for tenant in ("red", "blue", "", None)
    }
    assert counts == {"red": 1, "blue": 2, "": 0, None: 0}


def test_every_function_that_bypasses_row_security_checks_the_tenant_or_refuses_one(
    ask: Callable[..., list[Any]], url: str
) -> None:
    """A new function needs a line in `SAMPLES` only if it takes a new type of argument."""
    query = """
        SELECT proname, proargtypes::regtype[]::text[], prosrc LIKE '%current_setting(''toolscout.tenant'', true)%'
        FROM pg_proc WHERE pronamespace = 'toolscout'::regnamespace AND prosecdef AND prorettype <> 'void'::regtype
    """
    with psycopg.connect(url) as db:
        functions = db.execute(query).fetchall()
    assert {"unembedded", "holding", "records_of_all"} <= {name for name, _, _ in functions}
    for name, types, checks in functions:
        call = f"SELECT * FROM {name}({', '.join(f'%s::{kind}' for kind in types)})"
        values = [SAMPLES[kind] for kind in types]
        if checks:
            assert ask("red", call, *values) == []
        else:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="inside a tenant"):
                ask("red", call, *values)


def test_without_a_tenant_these_functions_answer_for_all_tenants(ask: Callable[..., list[Any]]) -> None:
    for nobody in (None, ""):
        assert set(ask(nobody, "SELECT DISTINCT tenant FROM unembedded('no-model')")) == {("red",), ("blue",)}


@pytest.mark.parametrize("table", TENANT_TABLES)
def test_nothing_of_another_tenant_can_be_written(ask: Callable[..., list[Any]], table: str) -> None:
    assert ask("red", f"DELETE FROM {table} WHERE tenant = 'blue'") == [(0,)]
    assert ask("red", f"UPDATE {table} SET tenant = 'red' WHERE tenant = 'blue'") == [(0,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask("red", f"UPDATE {table} SET tenant = 'blue'")


@pytest.mark.parametrize("statement", ["SELECT * FROM leases", "DELETE FROM vectors", "DROP TABLE tools"])
def test_tables_without_tenants_and_ddl_are_refused(ask: Callable[..., list[Any]], statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask("red", statement)


async def test_a_login_that_owns_nothing_is_enough_to_serve(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        if not db.execute("SELECT 1 FROM pg_roles WHERE rolname = 'toolscout_server'").fetchone():
            db.execute("CREATE ROLE toolscout_server LOGIN")
        db.execute(f"GRANT {ROLE} TO toolscout_server")
    limited = url.replace("postgres@", "toolscout_server@", 1)
    store = open_store(Settings(store=limited, resident_tools=0), Rules())
    await store.open()
    red = Caller(tenant="red")
    before = await keys(store, red)
    await publish(store, many(3, server="new"), tenant="red", embedder=HashEmbedder())
    assert len(await keys(store, red)) == len(before) + 3
    assert {item.tenant for item in (await look_for(store, "paint a wall", caller=red)).facets} == {"red"}
    await store.close()
