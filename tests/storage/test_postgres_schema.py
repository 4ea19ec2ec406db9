"""The schema of a database: created once by any number of replicas, never downgraded, and deletes cascade."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psycopg
import pytest

import editions
from catalogues import keys, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from postgres_server import Databases
from toolscout import SchemaVersionError, SettingError, StoreError
from toolscout.models import Caller, Scope
from toolscout.policy.rules import Rules
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.postgres import schema

REPLICAS = 10


@guarantee("store:upgrade")
async def test_ten_processes_may_create_the_schema_at_once(postgres: Databases) -> None:
    url = postgres.empty()
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(Path(editions.__file__)), "open", url, str(REPLICAS), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    assert output.split() == [b"ended", str(REPLICAS).encode()]
    with psycopg.connect(url) as db:
        assert db.execute("SELECT version FROM toolscout.schema_version").fetchall() == [(len(schema.MIGRATIONS),)]


@guarantee("store:upgrade")
async def test_a_newer_schema_is_refused_with_what_to_do_and_not_touched(database: Callable[[], str]) -> None:
    url, newer = database(), len(schema.MIGRATIONS) + 1
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE toolscout.schema_version SET version = %s", (newer,))
        store = open_store(Settings(store=url), Rules())
        with pytest.raises(SchemaVersionError, match=f"has schema {newer}") as caught:
            await store.open()
        await store.close()
        assert "upgrade toolscout" in caught.value.hint
        assert db.execute("SELECT version FROM toolscout.schema_version").fetchall() == [(newer,)]


@guarantee("store:upgrade")
async def test_a_migration_that_fails_leaves_the_database_as_it_was(
    database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, migrations = database(), schema.MIGRATIONS
    monkeypatch.setattr(schema, "MIGRATIONS", (*migrations, "CREATE TABLE half (x int); CREATE TABLE tools (x int)"))
    store = open_store(Settings(store=url), Rules())
    with pytest.raises(StoreError, match="already exists"):
        await store.open()
    await store.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*migrations, "CREATE TABLE notes AS SELECT 1 AS one"))
    store = open_store(Settings(store=url), Rules())
    await store.open()
    await publish(store, many(3))
    assert len(await keys(store)) == 3
    await store.close()
    with psycopg.connect(url) as db:
        assert db.execute("SELECT to_regclass('toolscout.half'), one FROM toolscout.notes").fetchall() == [(None, 1)]


@guarantee("store:upgrade")
async def test_a_database_of_the_third_schema_that_has_used_up_its_numbers_works_again(
    postgres: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.empty()
    with monkeypatch.context() as patch, psycopg.connect(url, autocommit=True) as db:
        patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:3])
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as login:
            await schema.migrate(login, url)
        db.execute("INSERT INTO toolscout.models (model_id, dimension) VALUES ('old', 4)")
        db.execute("SELECT setval('toolscout.models_model_seq', 32767)")
        db.execute("INSERT INTO toolscout.tenants VALUES ('local')")
        db.execute("INSERT INTO toolscout.scopes VALUES ('local', 'ann', 1, 0)")
        db.execute(
            "INSERT INTO toolscout.term_counts VALUES ('local', '', 'word', '', 0), ('local', '', 'kept', '', 2)"
        )
    store = open_store(Settings(store=url), Rules())
    await store.open()
    await publish(store, many(3), own={"ann": many(2, server="hers")}, embedder=HashEmbedder())
    assert len(await keys(store, Caller(user="ann"))) == 5
    await store.close()
    with psycopg.connect(url) as db:
        assert db.execute("SELECT model, model_id FROM toolscout.models ORDER BY 1").fetchall() == [
            (1, "old"),
            (2, "hash-1"),
        ]
        assert db.execute("SELECT lexeme FROM toolscout.term_counts").fetchall() == [("kept",)]


@guarantee("store:contract")
@pytest.mark.parametrize("resident_tools", [50_000, 0], ids=["postgres", "postgres-large"])
async def test_removing_a_server_or_a_user_removes_all_their_rows(
    database: Callable[[], str], resident_tools: int
) -> None:
    url = database()
    store = open_store(Settings(store=url, resident_tools=resident_tools), Rules())
    await store.open()
    own = {"ann": many(4, server="hers"), "bob": many(2, server="his")}
    await publish(store, [*many(5), *many(3, server="gone")], own=own, embedder=HashEmbedder())
    for scope in (Scope(owner="ann"), Scope(owner="bob")):
        server = (await store.servers(scope))[0].key
        await store.set_enabled(scope, [f"{server}__create_invoice_00000"], False)
    assert await store.remove_server(Scope(), "gone") == 3
    assert await store.remove_user("local", "ann") == 4
    with psycopg.connect(url) as db:
        columns = (("servers", "key"), ("tools", "server"), ("switches", "key"), ("search_rows", "server"))
        rest = {
            table: db.execute(
                f"SELECT count(*) FROM toolscout.{table} WHERE owner = 'ann' OR {column} LIKE 'gone%'"
            ).fetchone()
            for table, column in columns
        }
        total = db.execute("SELECT coalesce(sum(tools), 0) FROM toolscout.summaries WHERE owner <> 'bob'").fetchone()
        words = "SELECT count(*) FROM toolscout.term_counts WHERE owner = 'ann' OR server = 'gone'"
        assert db.execute(words).fetchone() == (0,)
    assert rest == dict.fromkeys(rest, (0,))
    assert total == ((5,) if resident_tools == 0 else (0,))
    assert len(await keys(store, Caller(user="bob"))) == 6
    await store.close()


@guarantee("store:contract")
async def test_unchanged_tools_are_not_written_again(database: Callable[[], str]) -> None:
    url = database()
    store = open_store(Settings(store=url, resident_tools=0), Rules())
    await store.open()
    row_versions = """
        SELECT 'tool', key, xmin::text FROM toolscout.tools
        UNION SELECT 'row', key, xmin::text FROM toolscout.search_rows
    """
    with psycopg.connect(url, autocommit=True) as db:
        await publish(store, many(20), embedder=HashEmbedder())
        before = db.execute(row_versions).fetchall()
        await publish(store, [{**many(20)[0], "description": "changed"}, *many(20)[1:]], embedder=HashEmbedder())
        after = db.execute(row_versions).fetchall()
    assert {row[:2] for row in set(after) - set(before)} == {
        ("tool", "many__create_invoice_00000"),
        ("row", "many__create_invoice_00000"),
    }
    await store.close()


@guarantee("store:contract")
async def test_a_model_has_one_number_however_often_vectors_are_added_at_once(database: Callable[[], str]) -> None:
    url = database()
    store = open_store(Settings(store=url), Rules())
    await store.open()
    vector = np.ones((1, 4), dtype=np.float32)
    await asyncio.gather(*(store.add_vectors("same", [f"{number:064x}"], vector) for number in range(5)))
    with psycopg.connect(url, autocommit=True) as db:
        assert db.execute("SELECT count(*) FROM toolscout.vectors").fetchone() == (5,)
        last = "SELECT last_value FROM toolscout.models_model_seq"
        before = db.execute(last).fetchone()
        await store.add_vectors("same", ["f" * 64], vector)
        assert db.execute(last).fetchone() == before
    await store.close()


@guarantee("store:contract")
def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("psycopg", "toolscout.storage.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingError) as caught:
        open_store(Settings(store="postgresql://localhost/x"), Rules())
    assert "toolscout[postgres]" in caught.value.hint


@guarantee("store:contract")
@pytest.mark.parametrize("url", ["postgresql://[::1", "postgresql://host/x?nonsense=1"])
def test_an_address_that_cannot_be_read_is_a_setting_error(url: str) -> None:
    with pytest.raises(SettingError, match="cannot be read"):
        open_store(Settings(store=url), Rules())
