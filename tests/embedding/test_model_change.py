"""A new model: its vectors are made beside the old ones, and one publication switches to them."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from catalogues import many, unembedded
from editions import edition, open_editions
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import EmbedderError, Scout
from toolscout.models import Document
from toolscout.ports import Progress

pytestmark = guarantee("embed:model-change")

OLD, NEW = "hash-1", "hash-2"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalogue.db"


def open_with(path: Path, embedder: HashEmbedder) -> Scout:
    return Scout.open(store=f"sqlite:///{path}", embedder=embedder)


async def by_meaning(scout: Scout) -> tuple[list[tuple[str, float | None]], str | None]:
    answer = await scout.search_tools("create one invoice", ranker="semantic", top_k=5)
    return [(match.tool.key, match.score) for match in answer], answer.metadata.degraded


class Paused(HashEmbedder):
    """A new model that waits for the test before it makes its first vectors."""

    def __init__(self) -> None:
        super().__init__(NEW, dimension=32)
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()

    async def embed_documents(self, documents: Sequence[Document], progress: Progress | None = None) -> Any:
        self.reached.set()
        await self.go_on.wait()
        return await super().embed_documents(documents, progress)


async def test_the_old_model_answers_until_the_new_one_is_ready(path: Path) -> None:
    new = Paused()
    async with open_with(path, HashEmbedder(OLD)) as before, open_with(path, new) as after:
        await before.index_tools(many(60))
        whole = await by_meaning(before)
        rebuilding = asyncio.ensure_future(after.refresh())
        async with asyncio.timeout(60):
            await new.reached.wait()
            assert await by_meaning(before) == whole
            new.go_on.set()
            report = await rebuilding
        assert (report.embedded, report.unembedded, report.new, report.changed) == (60, 0, 0, 0)
        found, degraded = await by_meaning(after)
        assert degraded is None
        assert found[0][0].startswith("many__create_invoice")


async def test_unchanged_tools_are_embedded_again_when_they_are_indexed_with_the_new_model(path: Path) -> None:
    async with open_with(path, HashEmbedder(OLD)) as before:
        await before.index_tools(many(20))
    async with open_with(path, HashEmbedder(NEW, dimension=32)) as after:
        _, degraded = await by_meaning(after)
        assert degraded == (
            "the catalogue holds vectors of hash-1, not of hash-2: answered by words alone; "
            "`toolscout index` rebuilds them"
        )
        report = await after.index_tools(many(20))
        assert (report.unchanged, report.embedded) == (20, 20)
        assert (await by_meaning(after))[1] is None


async def test_every_tenant_and_server_is_rebuilt_together(path: Path) -> None:
    async with open_with(path, HashEmbedder(OLD)) as before:
        await before.index_tools([*many(10, server="one"), *many(10, server="two")])
    async with open_with(path, HashEmbedder(NEW)) as after:
        report = await after.index_tools(many(12, server="one"))
        assert (report.new, report.embedded) == (2, 22)
        assert await unembedded(f"sqlite:///{path}", NEW) == []


async def test_a_new_model_that_fails_half_way_leaves_the_old_one_in_its_place(path: Path) -> None:
    async with open_with(path, HashEmbedder(OLD)) as before:
        await before.index_tools(many(20))
        whole = await by_meaning(before)
        broken = HashEmbedder(NEW, dimension=32)
        broken.failure = EmbedderError("out to lunch")
        async with open_with(path, broken) as after:
            report = await after.refresh()
            assert (report.embedded, report.unembedded) == (0, 20)
            assert await by_meaning(before) == whole
            broken.failure = None
            assert (await after.refresh()).embedded == 20
            assert (await by_meaning(after))[1] is None


async def test_going_back_to_the_old_model_embeds_nothing(path: Path) -> None:
    for embedder in (HashEmbedder(OLD), HashEmbedder(NEW)):
        async with open_with(path, embedder) as scout:
            assert (await scout.index_tools(many(20))).embedded == 20
    old = HashEmbedder(OLD)
    async with open_with(path, old) as scout:
        report = await scout.refresh()
        assert (report.embedded, report.unembedded, old.documents) == (0, 0, [])
        assert (await by_meaning(scout))[1] is None


async def test_vectors_are_kept_apart_by_model_and_length(path: Path) -> None:
    for embedder in (HashEmbedder(OLD, dimension=64), HashEmbedder(NEW, dimension=32)):
        async with open_with(path, embedder) as scout:
            await scout.index_tools(many(20))
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT model_id, length(vector), count(*) FROM vectors GROUP BY 1, 2 ORDER BY 1").fetchall()
    assert rows == [(OLD, 128, 20), (NEW, 64, 20)]


@pytest.mark.process
async def test_another_process_with_the_old_model_is_degraded_not_wrong(path: Path) -> None:
    async with open_editions(str(path), OLD) as here:
        await here.index_tools(edition(1))
        assert (await here.search_tools("only in 1", ranker="semantic")).metadata.degraded is None
        script = str(Path(__file__).parents[1] / "editions.py")
        elsewhere = await asyncio.create_subprocess_exec(sys.executable, script, "once", str(path), "2", NEW)
        assert await asyncio.wait_for(elsewhere.wait(), 60) == 0
        async with asyncio.timeout(60):
            while True:
                answer = await here.search_tools("only in 2", ranker="hybrid")
                if answer.metadata.degraded:
                    break
                await asyncio.sleep(0)
        assert "vectors of hash-2, not of hash-1" in answer.metadata.degraded
        assert answer[0].tool.name == "only_in_2"


async def test_one_of_several_processes_rebuilds_the_vectors_after_an_upgrade(path: Path) -> None:
    async with open_with(path, HashEmbedder(OLD)) as before:
        await before.index_tools(many(30))
    new = [HashEmbedder(NEW), HashEmbedder(NEW)]
    async with open_with(path, new[0]) as one, open_with(path, new[1]) as other:
        assert (await by_meaning(one))[1] is not None
        steps: list[int] = []
        counts = await asyncio.gather(
            one.update_vectors(progress=lambda done, _: steps.append(done)), other.update_vectors()
        )
        assert sorted(counts) == [0, 30]
        assert (await by_meaning(one))[1] is (await by_meaning(other))[1] is None
        assert await one.update_vectors() == 0


@pytest.mark.process
async def test_a_search_on_the_command_line_rebuilds_the_users_own_catalogue(path: Path) -> None:
    async with open_with(path, HashEmbedder(OLD)) as before:
        await before.index_tools(many(5))
    arguments = ["search", "create one invoice", "--json", "--store", f"sqlite:///{path}"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "toolscout", *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert json.loads(output)["metadata"]["degraded"] is None


@pytest.mark.process
async def test_a_gateway_rebuilds_the_vectors_in_the_background(path: Path) -> None:
    async with open_with(path, HashEmbedder(OLD)) as before:
        await before.index_tools(many(5))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "toolscout", "serve", "--store", f"sqlite:///{path}"),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        env={**os.environ, "XDG_CONFIG_HOME": str(path.parent)},
    )
    assert process.stderr is not None
    async with asyncio.timeout(60):
        while b"5 tools were embedded with the new model" not in await process.stderr.readline():
            pass
    process.terminate()
    await process.wait()
