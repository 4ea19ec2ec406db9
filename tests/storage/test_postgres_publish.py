"""What a publication does in the database: in which order, under which locks, and what it leaves behind."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from catalogues import keys, many, publish
from embedders import hash_vector
from guarantees import guarantee
from toolscout import StoreError, ToolNotFoundError
from toolscout.indexing.trust import write_pin
from toolscout.models import Caller, Pin, Publication, Scope
from toolscout.scout.transfer import export_catalogue
from toolscout.storage.postgres import store as engine
from waiting import eventually

pytestmark = guarantee("store:contract")

WAIT_S = 10.0
FIRST = "many__create_invoice_00000"


async def _someone_waits(url: str, count: int = 1, *, unless: asyncio.Task[Any] | None = None) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as db:
        query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

        async def waits() -> bool:
            return (unless is not None and unless.done()) or len(await (await db.execute(query)).fetchall()) >= count

        await eventually(waits, WAIT_S)


async def test_a_publication_that_takes_long_gets_its_number_at_the_end(
    url: str, new_replica: Callable[..., Any]
) -> None:
    """Replicas look for generations newer than the newest they know, and would miss a smaller number."""
    long, short = await new_replica(resident_tools=0), await new_replica()
    with psycopg.connect(url) as db:
        db.execute("LOCK TABLE toolscout.term_counts")
        begun_first = asyncio.create_task(publish(long, many(5), tenant="red"))
        await _someone_waits(url)
        generation = await publish(short, many(5), tenant="blue")
        db.rollback()
    assert await begun_first > generation


async def test_a_publication_for_all_tenants_and_one_of_a_large_tenant_take_turns(
    url: str, new_replica: Callable[..., Any]
) -> None:
    """The first locks every search row and then every scope. The second locks its scope, then its search rows."""
    store = await new_replica(resident_tools=2)
    await publish(store, many(1), tenant="blue")
    await publish(store, many(5), tenant="local")
    await store.add_vectors("hash-1", ["00" * 32], hash_vector("of no tool")[None])
    everywhere = Publication(
        scope=Scope(tenant="red"),
        servers=(),
        entries=(),
        unchanged_keys=frozenset(),
        model_id="hash-1",
        everywhere=True,
    )
    with psycopg.connect(url) as db:
        db.execute("SELECT 1 FROM toolscout.scopes WHERE tenant = 'blue' FOR UPDATE")
        for_all = asyncio.create_task(store.publish(everywhere))
        await _someone_waits(url)
        of_one = asyncio.create_task(publish(store, many(5, category="new"), tenant="local"))
        await _someone_waits(url, 2, unless=of_one)
        db.rollback()
    generations = await asyncio.gather(for_all, of_one)
    assert len(set(generations)) == 2
    assert len(await keys(store, category="new")) == 5


async def test_a_switch_looks_up_the_tool_after_it_has_the_lock(url: str, new_replica: Callable[..., Any]) -> None:
    store = await new_replica(resident_tools=0)
    await publish(store, many(5))
    with psycopg.connect(url) as db:
        db.execute("SELECT 1 FROM toolscout.tenants FOR UPDATE")
        switching = asyncio.create_task(store.set_enabled(Scope(), [FIRST], False))
        await _someone_waits(url)
        db.execute("DELETE FROM toolscout.tools WHERE key = %s", (FIRST,))
        db.commit()
        with pytest.raises(ToolNotFoundError):
            await switching
        assert db.execute("SELECT * FROM toolscout.switches").fetchall() == []


async def test_a_publication_succeeds_even_if_the_clean_up_after_it_fails(
    url: str, new_replica: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MANY_ENTRIES", 1)
    store = await new_replica()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "CREATE OR REPLACE FUNCTION toolscout.settle() RETURNS void AS "
            "$$ BEGIN RAISE 'out of order'; END $$ LANGUAGE plpgsql"
        )
    with pytest.raises(StoreError, match="out of order"):
        await store.pool.run(lambda db: db.execute("SELECT settle()"))
    assert await publish(store, many(5)) > 0
    assert len(await keys(store)) == 5


async def test_counts_of_words_that_no_tool_has_any_more_are_removed(url: str, new_replica: Callable[..., Any]) -> None:
    store = await new_replica(resident_tools=0)
    await publish(store, [*many(5), *many(2, server="gone", category="rare")], own={"ann": many(3, server="hers")})
    with psycopg.connect(url, autocommit=True) as db:
        query = "SELECT owner, lexeme, server, tools FROM toolscout.term_counts ORDER BY 1, 2, 3"
        await store.remove_server(Scope(), "gone")
        await store.remove_user("local", "ann")
        await store.set_enabled(Scope(), [FIRST], False)
        rest = db.execute(query).fetchall()
        assert rest
        assert all(row[0] == "" and row[2] in ("", "many") and row[3] > 0 for row in rest)
        assert db.execute("SELECT owner, server, sum(tools) FROM toolscout.summaries GROUP BY 1, 2").fetchall() == [
            ("", "many", 4)
        ]
        await store.set_enabled(Scope(), [FIRST], True)
        await publish(store, many(4))
        await publish(store, many(5))
        again = await new_replica(resident_tools=0)
        await publish(again, many(5), tenant="red")
        of_tenant = "FROM toolscout.term_counts WHERE tenant = %s GROUP BY 1, 2, 3"
        rows = f"SELECT length(lexeme), server, tools, count(*) {of_tenant}"
        assert set(db.execute(rows, ("local",)).fetchall()) == set(db.execute(rows, ("red",)).fetchall())


async def test_removed_users_and_expired_leases_are_deleted_in_time(url: str, new_replica: Callable[..., Any]) -> None:
    store = await new_replica()
    await publish(store, many(5), own={"ann": many(3, server="hers"), "bob": many(2, server="his")})
    await store.lease("held", "me", 60)
    await store.lease("given", "me", 60)
    await store.release("given", "me")
    assert await store.remove_user("local", "ann") == 3
    owners, leases = "SELECT owner FROM toolscout.scopes ORDER BY 1", "SELECT name FROM toolscout.leases ORDER BY 1"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT toolscout.forget_unused('1 day')")
        assert db.execute(owners).fetchall() == [("",), ("ann",), ("bob",)]
        db.execute("SELECT toolscout.forget_unused('0 s')")
        assert db.execute(owners).fetchall() == [("",), ("bob",)]
        assert ("held",) in db.execute(leases).fetchall()
        assert ("given",) not in db.execute(leases).fetchall()
    ann = Caller(user="ann")
    assert len(await keys(store, ann)) == 5
    await publish(store, many(5), own={"ann": many(1, server="hers")})
    assert len(await keys(store, ann)) == 6


async def test_a_user_with_pinned_definitions_is_not_deleted(url: str, new_replica: Callable[..., Any]) -> None:
    store = await new_replica()
    await publish(store, many(5), own={"ann": many(3, server="hers"), "bob": many(2, server="his")})
    pin = Pin(key="hers__send", fingerprint="f" * 64, verdict="kept_out")
    await store.put_records([write_pin(Scope(owner="ann"), pin)])
    await store.remove_server(Scope(owner="ann"), "hers")
    await store.remove_user("local", "bob")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT toolscout.forget_unused('0 s')")
    assert set(await store.scopes()) == {Scope(), Scope(owner="ann")}
    out = io.BytesIO()
    await export_catalogue(store, out)
    assert '"verdict":"kept_out"' in out.getvalue().decode()
