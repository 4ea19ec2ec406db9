"""Edits of the config are applied without a restart. A broken edit is reported and changes nothing."""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client

from downstreams import QUICK, fake, until
from embedders import GatedEmbedder
from guarantees import guarantee
from servers import stdio
from serving import serving, write_config
from toolscout import Scout
from toolscout.config import Config
from toolscout.gateway.file_watcher import watch_config

EITHER = str(Path(__file__).parent.parent / "either_server.py")
WAIT_S = 20.0

pytestmark = guarantee("fault:changed")


class Watched:
    """A watcher of files, and the configs that it has applied."""

    def __init__(self, *paths):
        self.paths = paths
        self.applied: asyncio.Queue[Config] = asyncio.Queue()
        self.polling = asyncio.Event()
        self.looks = 0

    def files(self):
        self.looks += 1
        if self.looks == 3:  # first which files are broken, then their state, and now a change would be seen
            self.polling.set()
        return self.paths

    async def __aenter__(self):
        self.task = asyncio.create_task(watch_config(self.files, self.applied.put, 0.01))
        await asyncio.wait_for(self.polling.wait(), WAIT_S)
        return self

    async def __aexit__(self, *_error):
        self.task.cancel()

    async def titles(self):
        config = await asyncio.wait_for(self.applied.get(), WAIT_S)
        return [server.title for server in config.servers if not server.problem]


async def test_each_edit_is_applied_once_and_a_broken_one_not_at_all(tmp_path, caplog):
    path = write_config(tmp_path, stdio("a", "one"))
    with caplog.at_level(logging.INFO, logger="toolscout"):
        async with Watched(path) as watched:
            write_config(tmp_path, stdio("a", "one"), stdio("bb", "two"))
            assert await watched.titles() == ["a", "bb"]
            path.write_text("{ broken")
            await until(lambda: "was not applied" in caplog.text)
            assert watched.applied.empty()
            write_config(tmp_path, stdio("ccc", "three"))
            assert await watched.titles() == ["ccc"]


async def test_a_file_that_was_broken_from_the_start_does_not_stop_edits_of_another(tmp_path, caplog):
    broken, path = tmp_path / "broken.json", write_config(tmp_path, stdio("a", "one"))
    broken.write_text("{ broken")
    async with Watched(broken, path) as watched:
        write_config(tmp_path, stdio("bb", "two"))
        assert await watched.titles() == ["bb"]
        path.write_text("{ broken")
        await until(lambda: "was not applied" in caplog.text)
        assert watched.applied.empty()


@pytest.mark.process
async def test_a_server_added_while_it_serves_is_listed_and_a_removed_one_goes(tmp_path):
    async def listed(client, wanted):
        async with asyncio.timeout(WAIT_S):
            while True:
                tools = (await client.list_tools()).tools
                if {tool.name.split("__")[0] for tool in tools} == wanted:
                    break
                await asyncio.sleep(0.05)

    first, second = stdio("first", sys.executable, EITHER), stdio("second", sys.executable, EITHER)
    write_config(tmp_path, first)
    with serving(tmp_path, "--surface", "all") as gateway:
        async with Client(gateway.url, mode="legacy") as client:
            await listed(client, {"first"})
            write_config(tmp_path, first, second)
            await listed(client, {"first", "second"})
            write_config(tmp_path, second)
            await listed(client, {"second"})
            got = await client.call_tool("second__era", {})
            assert not got.is_error


@pytest.mark.process
async def test_a_server_that_leaves_the_config_while_it_is_indexed_does_not_come_back(tmp_path):
    embedder = GatedEmbedder()
    leaving, staying = (fake(tmp_path, title, "--tools", "2").config for title in ("leaving", "staying"))
    settings = replace(QUICK, store=f"sqlite:///{tmp_path / 'catalogue.db'}")
    async with Scout.open(settings=settings, embedder=embedder) as scout:
        live = await scout.connect(Config(servers=(leaving,)))
        await until(lambda: bool(embedder.documents))
        await scout.connect(Config(servers=(staying,)))
        embedder.gate.set()
        await until(lambda: len(live.reports) == 2)
        await asyncio.wait_for(live.settled(), WAIT_S)
        assert {match.tool.server for match in await scout.list_tools()} == {"staying"}


@pytest.mark.process
async def test_a_server_that_comes_back_to_the_config_before_it_was_taken_out_stays(tmp_path):
    embedder = GatedEmbedder()
    server = fake(tmp_path, "fake", "--tools", "2").config
    settings = replace(QUICK, store=f"sqlite:///{tmp_path / 'catalogue.db'}")
    async with Scout.open(settings=settings, embedder=embedder) as scout:
        live = await scout.connect(Config(servers=(server,)))
        await until(lambda: bool(embedder.documents))
        await scout.connect(Config())
        await scout.connect(Config(servers=(server,)))
        embedder.gate.set()
        await asyncio.wait_for(live.settled(), WAIT_S)
        assert len(await scout.list_tools()) == 2
