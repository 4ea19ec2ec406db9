"""Two processes on one file: a reader serves the old generation, then the new one, without a restart."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path

import pytest

from catalogues import many, publish
from editions import edition, editions_store, open_editions
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Scout
from toolscout.models import Caller, Overview
from toolscout.policy.rules import Rules
from toolscout.ports import Store
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.sqlite.store import SqliteStore

pytestmark = guarantee("store:contract")

SCRIPT = str(Path(__file__).parents[1] / "editions.py")
PATIENCE_S = 60


async def publish_elsewhere(path: Path, number: int) -> None:
    """Publish an edition from another process and wait until it has ended."""
    process = await asyncio.create_subprocess_exec(sys.executable, SCRIPT, "once", str(path), str(number), "hash-1")
    assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0


async def caught_up(scout: Scout, number: int) -> None:
    """Read until the edition is there. Every read until then sees one whole edition."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            page = await scout.list_tools(page_size=100)
            numbers = {int(match.tool.description.split()[1]) for match in page}
            assert len(numbers) == 1
            if numbers == {number}:
                return
            await asyncio.sleep(0)


async def overview_when(store: Store, *, stale: bool) -> Overview:
    """Read until the overview is stale, or no longer stale."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            overview = await store.overview(Caller())
            if overview.stale is stale:
                return overview
            await asyncio.sleep(0)


@pytest.mark.process
async def test_a_reader_sees_the_old_then_the_new_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    await publish_elsewhere(path, 1)
    async with open_editions(str(path)) as reader:
        await caught_up(reader, 1)
        await publish_elsewhere(path, 2)
        await caught_up(reader, 2)
        assert {match.tool.name for match in await reader.list_tools(page_size=100)} == {
            row["name"] for row in edition(2)
        }
        answer = await reader.search_tools("only in 2", ranker="semantic", top_k=1)
        assert answer[0].tool.name == "only_in_2"


@pytest.mark.process
async def test_a_reader_that_has_caught_up_reads_the_file_no_more(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    await publish_elsewhere(path, 1)
    store = editions_store(str(path))
    assert isinstance(store, SqliteStore)
    async with open_editions(str(path), store=store) as reader:
        await publish_elsewhere(path, 2)
        await caught_up(reader, 2)
        last = store._reload
        assert last
        await last
        for _ in range(5):
            await reader.list_tools()
        assert store._reload is last


async def test_two_writers_take_turns_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    url = f"sqlite:///{path}"
    async with (
        Scout.open(store=url, embedder=HashEmbedder()) as one,
        Scout.open(store=url, embedder=HashEmbedder()) as two,
    ):
        await asyncio.gather(
            *(
                scout.index_tools(many(10, server=f"{name}{turn}"))
                for turn in range(5)
                for name, scout in (("a", one), ("b", two))
            )
        )
    async with Scout.open(store=url, embedder=HashEmbedder()) as reader:
        page = await reader.list_tools()
        assert page.pagination is not None
        assert page.pagination.total_tools == 100


@pytest.mark.process
async def test_a_reader_opens_and_reads_while_another_process_is_writing(tmp_path: Path) -> None:
    """Without a migration nothing is written, so the reader need not wait for the writer."""
    path = tmp_path / "catalogue.db"
    await publish_elsewhere(path, 1)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM tools")
    try:
        settings = Settings(store_timeout_s=0)
        async with Scout.open(store=f"sqlite:///{path}", embedder=HashEmbedder(), settings=settings) as reader:
            assert len(await reader.list_tools(page_size=100)) == len(edition(1))
    finally:
        writer.execute("ROLLBACK")
        writer.close()


async def test_if_a_reload_fails_the_old_generation_is_served_and_marked_stale(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    store = open_store(Settings(store=f"sqlite:///{path}"), Rules())
    await store.open()
    try:
        await publish(store, many(3), embedder=HashEmbedder())
        with sqlite3.connect(path) as other:
            other.execute("ALTER TABLE catalogue RENAME TO elsewhere")
        assert (await overview_when(store, stale=True)).total == 3
        with sqlite3.connect(path) as other:
            other.execute("DELETE FROM tools WHERE key LIKE '%00001'")
            other.execute("UPDATE scopes SET generation = generation + 1")
            other.execute("ALTER TABLE elsewhere RENAME TO catalogue")
        assert (await overview_when(store, stale=False)).total == 2
    finally:
        other.close()
        await store.close()


@pytest.mark.process
async def test_several_processes_may_create_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.db"
    await asyncio.gather(*(publish_elsewhere(path, 7) for _ in range(3)))
    async with open_editions(str(path)) as reader:
        await caught_up(reader, 7)
