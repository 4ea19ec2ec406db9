"""A file of an earlier version migrates when it is opened. One of a newer version is refused and left alone."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from catalogues import keys, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import SchemaVersionError, Scout, StoreError
from toolscout.errors import to_wire
from toolscout.models import Caller, Scope
from toolscout.policy.rules import Rules
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.sqlite import schema

pytestmark = guarantee("store:upgrade")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalogue.db"


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


async def test_a_file_without_a_version_gets_every_migration(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 7")
        db.execute("CREATE TABLE something_of_before (note TEXT)")
        db.execute("INSERT INTO something_of_before VALUES ('stays')")
        db.commit()
    assert version_of(path) == 0
    async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder()) as scout:
        assert (await scout.index_tools(many(4))).new == 4
    assert version_of(path) == len(schema.MIGRATIONS)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT note FROM something_of_before").fetchall() == [("stays",)]


async def test_a_file_of_the_last_version_gets_only_what_is_new(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder()) as scout:
        await scout.index_tools(many(4))
    script = (
        "CREATE TABLE notes (tenant TEXT, key TEXT, note TEXT); INSERT INTO notes SELECT tenant, key, '' FROM tools"
    )
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, script))
    async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder()) as scout:
        assert len(await scout.list_tools()) == 4
        assert (await scout.search_tools("create invoice", ranker="semantic")).metadata.degraded is None
    assert version_of(path) == len(schema.MIGRATIONS)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM notes").fetchone() == (4,)


async def test_a_file_of_schema_1_gives_its_tools_and_switches_to_everyone(
    path: Path,
) -> None:
    url, rows = f"sqlite:///{path}", many(4)
    async with Scout.open(store=url, embedder=HashEmbedder()) as scout:
        await scout.index_tools(rows)
        await scout.set_enabled("many__create_invoice_00000", False)
    _back_to_schema_1(path)
    async with Scout.open(store=url, embedder=HashEmbedder()) as scout:
        assert [match.tool.name for match in await scout.list_tools()] == sorted(row["name"] for row in rows[1:])
        assert (await scout.overview()).generation == 2
        report = await scout.index_tools(rows)
        assert (report.unchanged, report.embedded) == (4, 0)
        assert len(await scout.list_tools(caller=Caller(user="ann"))) == 3
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def _back_to_schema_1(path: Path) -> None:
    """Rewrite a file with the schema of the first release, keeping its contents."""
    with closing(sqlite3.connect(path)) as db:
        tables = ("catalogue", "servers", "tools", "switches", "vectors")
        rows_of = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
        rows_of["servers"] = [(tenant, *rest) for tenant, _, *rest in rows_of["servers"]]
        rows_of["tools"] = [(tenant, key, owner, *rest) for tenant, owner, key, *rest, _ in rows_of["tools"]]
        rows_of["switches"] = [(tenant, *rest) for tenant, _, *rest, _ in rows_of["switches"]]
        for name in (*tables[::-1], "scopes", "leases", "records", "gone_pins"):
            db.execute(f"DROP TABLE {name}")
        db.executescript(schema.MIGRATIONS[0])
        db.execute("DELETE FROM catalogue")
        for name, rows in rows_of.items():
            for row in rows:
                db.execute(f"INSERT INTO {name} VALUES ({','.join('?' * len(row))})", row)
        db.execute("PRAGMA user_version = 1")
        db.commit()


async def test_a_migration_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder()) as scout:
        await scout.index_tools(many(4))
    migrations = schema.MIGRATIONS
    monkeypatch.setattr(schema, "MIGRATIONS", (*migrations, "CREATE TABLE half (x); CREATE TABLE tools (x)"))
    with pytest.raises(StoreError, match="already exists"):
        async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder()):
            pass
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)
    assert version_of(path) == len(migrations)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder()) as scout:
        assert len(await scout.list_tools()) == 4


async def test_a_newer_file_is_refused_with_what_to_do_and_not_touched(path: Path) -> None:
    newer = len(schema.MIGRATIONS) + 1
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {newer}")
        db.execute("CREATE TABLE tools (of_the_future TEXT)")
        db.commit()
    store = open_store(Settings(store=f"sqlite:///{path}"), Rules())
    with pytest.raises(SchemaVersionError, match=f"has schema {newer}") as caught:
        await store.open()
    await store.close()
    assert "upgrade toolscout" in caught.value.hint
    assert caught.value.code == "store_newer"
    assert str(path) in caught.value.message
    assert str(path) not in json.dumps(to_wire(caught.value))
    assert version_of(path) == newer
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("tools",)]


async def test_opening_again_keeps_everything(path: Path) -> None:
    settings = Settings(store=f"sqlite:///{path}")
    first = open_store(settings, Rules())
    await first.open()
    generation = await publish(first, many(20), embedder=HashEmbedder())
    await first.set_enabled(Scope(), ["many__create_invoice_00000"], False)
    await first.close()
    again = open_store(settings, Rules())
    await again.open()
    overview = await again.overview(Caller())
    assert (overview.generation, overview.model_id, overview.total) == (generation + 1, "hash-1", 19)
    assert "many__create_invoice_00000" not in await keys(again)
    assert await again.unembedded("hash-1") == []
    await again.close()
