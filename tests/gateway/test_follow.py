"""Edits of the config are followed without a restart; a broken edit is told and changes nothing."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from mcp import Client

from promises import promise
from servers import stdio
from serving import serving, write_config
from toolscout.gateway.follow import follow_config

EITHER = str(Path(__file__).parent.parent / "either_server.py")
WAIT_S = 20.0

pytestmark = promise("fault:changed")


async def test_each_edit_is_applied_once_and_a_broken_one_not_at_all(tmp_path, caplog):
    path = write_config(tmp_path, stdio("a", "one"))
    applied: asyncio.Queue = asyncio.Queue()
    looked = asyncio.Event()

    def files():
        looked.set()
        return [path]

    with caplog.at_level(logging.INFO, logger="toolscout"):
        following = asyncio.create_task(follow_config(files, applied.put, 0.01))
        await asyncio.wait_for(looked.wait(), WAIT_S)
        await asyncio.sleep(0.05)
        write_config(tmp_path, stdio("a", "one"), stdio("bb", "two"))
        config = await asyncio.wait_for(applied.get(), WAIT_S)
        assert [server.title for server in config.servers] == ["a", "bb"]
        path.write_text("{ broken")
        async with asyncio.timeout(WAIT_S):
            while True:
                await asyncio.sleep(0.01)
                if "is not followed" in caplog.text:
                    break
        assert applied.empty()
        write_config(tmp_path, stdio("ccc", "three"))
        config = await asyncio.wait_for(applied.get(), WAIT_S)
        assert [server.title for server in config.servers] == ["ccc"]
        following.cancel()


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
