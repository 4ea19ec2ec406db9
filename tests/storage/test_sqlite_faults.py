"""A file on a full disk, a locked, damaged or missing file: a typed error says so, and nothing is lost."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from catalogues import keys, look_for, many, publish
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Scout, SettingError, StoreError
from toolscout.models import Caller, Scope
from toolscout.policy.rules import Rules
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.sqlite import SqliteStore
from toolscout.storage.sqlite.damage import find_damage

OLD, NEW = many(50), many(1_500, tags=["new"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalogue.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    sqlite_store = open_store(Settings(store=f"sqlite:///{path}", store_timeout_s=0.01), Rules())
    assert isinstance(sqlite_store, SqliteStore)
    await sqlite_store.open()
    await publish(sqlite_store, OLD, embedder=HashEmbedder())
    yield sqlite_store
    await sqlite_store.close()


@contextmanager
def full_disk(store: SqliteStore) -> Iterator[None]:
    """Limit SQLite to a few more pages, as on a full disk."""
    db = store.connection
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages + 3}")
    yield
    db.execute("PRAGMA max_page_count = 4294967294")


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


async def still_serves_the_old(store: SqliteStore) -> None:
    assert await keys(store) == sorted(f"many__{row['name']}" for row in OLD)
    candidates = await look_for(store, "create invoice")
    assert candidates.cosine.max() > 0.5


@guarantee("store:full")
async def test_a_full_disk_is_a_typed_error_and_the_old_generation_is_served(store: SqliteStore) -> None:
    before = (await store.overview(Caller())).generation
    with full_disk(store):
        for _ in range(2):
            with pytest.raises(StoreError, match="full") as caught:
                await publish(store, NEW)
            assert "free some disk space" in caught.value.hint
            await still_serves_the_old(store)
    assert (await store.overview(Caller())).generation == before


@guarantee("store:full")
async def test_a_full_disk_while_vectors_are_stored_is_a_typed_error_too(store: SqliteStore) -> None:
    with full_disk(store), pytest.raises(StoreError, match="full"):
        await publish(store, NEW, embedder=HashEmbedder())
    await still_serves_the_old(store)


@guarantee("store:full")
async def test_when_the_disk_has_space_again_no_restart_is_needed(store: SqliteStore) -> None:
    with full_disk(store), pytest.raises(StoreError):
        await publish(store, NEW)
    await publish(store, NEW, embedder=HashEmbedder())
    assert len(await keys(store)) == len(NEW)


_LIMITED = """
import asyncio, resource, sys
from catalogues import keys, many, publish
from toolscout import StoreError
from toolscout.policy.rules import Rules
from toolscout.settings import Settings
from toolscout.storage import open_store

async def main():
    store = open_store(Settings(store=f"sqlite:///{sys.argv[1]}"), Rules())
    await store.open()
    await publish(store, many(50))
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, unlimited[1]))
    try:
        await publish(store, many(3_000))
    except StoreError as error:
        print(error.message)
    print(len(await keys(store)))
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    await publish(store, many(60))
    print(len(await keys(store)))
    await store.close()

asyncio.run(main())
"""


@pytest.mark.process
@guarantee("store:full")
@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are a thing of Unix")
def test_a_write_that_the_system_refuses_is_named_and_undone(path: Path) -> None:
    """The system itself stops the write here: SQLite has rolled back before toolscout gets to."""
    tests = str(Path(__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(path)], capture_output=True, text=True, timeout=60, cwd=tests, check=False
    )
    assert ran.stdout.splitlines() == [f"{path}: disk I/O error", "50", "60"], ran.stderr


@guarantee("store:contract")
async def test_a_file_locked_by_another_writer_says_what_to_do(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked") as caught:
            await publish(store, NEW)
        assert "TOOLSCOUT_STORE_TIMEOUT_S" in caught.value.hint
        await still_serves_the_old(store)
        other.execute("ROLLBACK")
    await publish(store, many(60))
    assert len(await keys(store)) == 60


@guarantee("store:contract")
@pytest.mark.parametrize("content", [b"this is a letter, not a catalogue. " * 200, bytes(range(256)) * 64])
async def test_a_file_that_is_no_database_is_named_and_not_touched(path: Path, content: bytes) -> None:
    write(path, content)
    store = open_store(Settings(store=f"sqlite:///{path}"), Rules())
    with pytest.raises(StoreError, match="not a database") as caught:
        await store.open()
    await store.close()
    assert str(path) in caught.value.message
    assert "move it elsewhere" in caught.value.hint
    assert read(path) == content


@guarantee("store:contract")
async def test_a_damaged_file_is_a_clear_error_not_a_wrong_answer(path: Path) -> None:
    first = open_store(Settings(store=f"sqlite:///{path}"), Rules())
    await first.open()
    await publish(first, many(300), embedder=HashEmbedder())
    await first.close()
    whole = read(path)
    write(path, whole[:8_192] + b"\xa5" * (len(whole) - 8_192))
    again = open_store(Settings(store=f"sqlite:///{path}"), Rules())
    with pytest.raises(StoreError) as caught:
        await again.open()
    await again.close()
    assert "damaged" in caught.value.hint


@guarantee("store:contract")
async def test_a_folder_in_the_place_of_the_file_is_a_clear_error(tmp_path: Path) -> None:
    store = open_store(Settings(store=f"sqlite:///{tmp_path}"), Rules())
    with pytest.raises(StoreError, match="unable to open"):
        await store.open()
    await store.close()


@guarantee("store:contract")
async def test_a_store_that_is_not_open_says_so() -> None:
    store = open_store(Settings(store="memory:"), Rules())
    with pytest.raises(StoreError, match="not open"):
        await store.overview(Caller())
    with pytest.raises(StoreError, match="not open"):
        await store.servers(Scope())
    await store.close()


@guarantee("store:contract")
@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "postgres", "memory", "mysql://x/y"])
def test_an_address_that_names_no_store_is_a_setting_error(url: str) -> None:
    with pytest.raises(SettingError, match="names no store"):
        open_store(Settings(store=url), Rules())


@guarantee("store:contract")
async def test_a_file_that_may_not_be_opened_or_written_is_told_with_what_to_look_at(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    store.connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="readonly") as caught:
        await publish(store, NEW)
    store.connection.execute("PRAGMA query_only = OFF")
    assert caught.value.hint == f"check the owner and mode of {path} and of its folder"
    await still_serves_the_old(store)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder.db").mkdir()
    for wrong in (tmp_path / "file" / "catalogue.db", tmp_path / "folder.db"):
        made = open_store(Settings(store=f"sqlite:///{wrong}"), Rules())
        with pytest.raises(StoreError) as caught:
            await made.open()
        await made.close()
        assert caught.value.hint == f"check the owner and mode of {wrong} and of its folder"


@guarantee("store:down")
async def test_damage_of_the_file_is_found_by_the_check_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder()) as scout:
        await scout.index_tools([{"name": f"tool_{number}", "description": "word " * 200} for number in range(200)])
    assert find_damage(path) == ""
    data = bytearray(path.read_bytes())
    data[20_000:40_000] = b"\xff" * 20_000
    path.write_bytes(data)
    assert find_damage(path)
