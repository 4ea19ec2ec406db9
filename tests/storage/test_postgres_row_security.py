"""The second wall: whatever a query forgets to say, the application's role sees one tenant's rows, vectors included."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest

from catalogues import keys, look_for, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from postgres_server import Databases
from toolscout.models import Caller, Record, Scope
from toolscout.policy.rules import Rules
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.postgres.encoding import any_of, term_lexeme
from toolscout.storage.postgres.schema import ROLE

pytestmark = guarantee("tenant:isolation")

WALLED = ("tenants", "scopes", "servers", "tools", "switches", "records", "search_rows", "term_counts", "summaries")
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
    """Give a database of two tenants with the same names, one text in common, all of it searched in the database."""
    made = postgres.fresh()
    store = open_store(Settings(store=made, resident_tools=0), Rules())
    await store.open()
    for tenant in ("red", "blue", "red"):
        only = {"name": f"only_{tenant}", "server": "studio", "description": f"The {tenant} secret"}
        rows = [SHARED, only, *many(5, server=f"at-{tenant}")]
        await publish(store, rows, tenant=tenant, own={"ann": [SHARED, only]}, embedder=HashEmbedder())
        await store.set_enabled(Scope(tenant=tenant), "studio__paint", tenant == "red")
        await store.put_records([Record(kind="pin", scope=Scope(tenant=tenant), name="studio__paint")])
    await store.lease("index:red:studio", "one", 60)
    await store.close()
    return made


@pytest.fixture
async def wall(url: str) -> AsyncIterator[Callable[..., list[Any]]]:
    """Give what asks raw SQL as the application's role, for a tenant or for none."""
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


@pytest.mark.parametrize("table", WALLED)
def test_every_table_shows_one_tenant(wall: Callable[..., list[Any]], table: str) -> None:
    for tenant in ("red", "blue"):
        found = wall(tenant, f"SELECT DISTINCT tenant FROM {table}")
        assert found == [(tenant,)]
    for nobody in (None, "", "green", "red' OR true --"):
        assert wall(nobody, f"SELECT * FROM {table}") == []


def test_every_table_with_a_tenant_is_walled(wall: Callable[..., list[Any]], url: str) -> None:
    with psycopg.connect(url) as db:
        found = db.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'toolscout' "
            "AND column_name = 'tenant'"
        ).fetchall()
    assert {name for (name,) in found} == set(WALLED)


def test_a_vector_is_reached_through_a_tool_of_the_tenant_only(wall: Callable[..., list[Any]], url: str) -> None:
    hashes = "SELECT DISTINCT text_hash FROM toolscout.tools WHERE tenant = %s"
    with psycopg.connect(url) as db:
        texts = {tenant: set(db.execute(hashes, (tenant,)).fetchall()) for tenant in ("red", "blue")}
    assert texts["red"] & texts["blue"]
    for tenant in ("red", "blue"):
        seen = set(wall(tenant, "SELECT text_hash FROM vectors"))
        assert seen == texts[tenant]
        assert seen < texts["red"] | texts["blue"]
    assert wall(None, "SELECT * FROM vectors") == []


def test_the_doors_in_the_wall_ask_for_the_tenant_too(wall: Callable[..., list[Any]]) -> None:
    query = any_of([term_lexeme("red", "paint"), term_lexeme("blue", "paint"), term_lexeme("blue", "secret")])
    counts = {
        tenant: len(wall(tenant, "SELECT holding(%s::tsquery, '')", query)) for tenant in ("red", "blue", "", None)
    }
    assert counts == {"red": 1, "blue": 2, "": 0, None: 0}


def test_every_door_asks_for_the_tenant_or_is_closed_inside_a_tenants_transaction(
    wall: Callable[..., list[Any]], url: str
) -> None:
    """A new door needs a line here only when it takes a new kind of argument."""
    doors = """
        SELECT proname, proargtypes::regtype[]::text[], prosrc LIKE '%current_setting(''toolscout.tenant'', true)%'
        FROM pg_proc WHERE pronamespace = 'toolscout'::regnamespace AND prosecdef AND prorettype <> 'void'::regtype
    """
    with psycopg.connect(url) as db:
        found = db.execute(doors).fetchall()
    assert {"unembedded", "holding", "records_of_all"} <= {name for name, _, _ in found}
    for name, types, asks in found:
        call = f"SELECT * FROM {name}({', '.join(f'%s::{kind}' for kind in types)})"
        values = [SAMPLES[kind] for kind in types]
        if asks:
            assert wall("red", call, *values) == []
        else:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="inside a tenant"):
                wall("red", call, *values)


def test_outside_of_tenants_the_doors_answer_for_all(wall: Callable[..., list[Any]]) -> None:
    for nobody in (None, ""):
        assert set(wall(nobody, "SELECT DISTINCT tenant FROM unembedded('no-model')")) == {("red",), ("blue",)}


@pytest.mark.parametrize("table", WALLED)
def test_nothing_of_another_tenant_can_be_written(wall: Callable[..., list[Any]], table: str) -> None:
    assert wall("red", f"DELETE FROM {table} WHERE tenant = 'blue'") == [(0,)]
    assert wall("red", f"UPDATE {table} SET tenant = 'red' WHERE tenant = 'blue'") == [(0,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        wall("red", f"UPDATE {table} SET tenant = 'blue'")


@pytest.mark.parametrize("statement", ["SELECT * FROM leases", "DELETE FROM vectors", "DROP TABLE tools"])
def test_what_is_no_tenants_business_is_refused(wall: Callable[..., list[Any]], statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        wall("red", statement)


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
