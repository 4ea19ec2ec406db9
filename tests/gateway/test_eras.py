"""End to end with real processes: clients and servers of both eras, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client
from mcp_types import ElicitResult

from guarantees import guarantee
from servers import stdio
from serving import serving, stdio_parameters, write_config

pytestmark = pytest.mark.process

EITHER = str(Path(__file__).parent.parent / "either_server.py")
WAIT_S = 30.0
NEW, OLD = "2026-07-28", "2025-11-25"


async def elicited(_context, _params):
    return ElicitResult(action="accept", content={"name": "Ada"})


@asynccontextmanager
async def connected(folder, transport, era):
    if transport == "stdio":
        async with Client(stdio_parameters(folder), mode=era, elicitation_callback=elicited) as client:
            yield client
        return
    with serving(folder) as gateway:
        async with Client(gateway.url, mode=era, elicitation_callback=elicited) as client:
            yield client


async def until_found(client, query, key):
    """Search until the servers are indexed, and return the hit."""
    async with asyncio.timeout(WAIT_S):
        while True:
            got = await client.call_tool("search_tools", {"query": query, "detail": "full"})
            hits = {hit["key"]: hit for hit in got.structured_content["tools"]}
            if key in hits:
                return hits[key]
            await asyncio.sleep(0.05)


@guarantee("proto:dual-era")
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("up", ["legacy", NEW])
async def test_clients_of_both_eras_reach_servers_of_both_eras(tmp_path, transport, up):
    write_config(tmp_path, stdio("new", sys.executable, EITHER), stdio("old", sys.executable, EITHER, "--legacy"))
    async with connected(tmp_path, transport, up) as client:
        assert client.protocol_version == (OLD if up == "legacy" else NEW)
        assert [tool.name for tool in (await client.list_tools()).tools][:1] == ["search_tools"]
        for server, version in (("new", NEW), ("old", OLD)):
            hit = await until_found(client, "which protocol version is spoken", f"{server}__era")
            assert hit["call_with"] == "call_read_tool"
            got = await client.call_tool("call_read_tool", {"name": hit["key"], "version": hit["version"]})
            assert got.content[0].text == version
            got = await client.call_tool("call_tool", {"name": f"{server}__stamp"})
            assert got.structured_content == {"stamp": {"n": None}}
            assert got.meta["vendor/x"] == [1]
            got = await client.call_tool("call_tool", {"name": f"{server}__greet"})
            assert got.content[0].text.startswith("hello Ada"), got.content[0].text


@guarantee("proto:passthrough")
@pytest.mark.parametrize("up", ["legacy", NEW])
async def test_a_real_server_is_searched_called_and_read_through_the_gateway(tmp_path, everything_server, up):
    write_config(tmp_path, everything_server)
    steps = []

    async def progress(done, total, message):
        steps.append((done, total))

    async with connected(tmp_path, "stdio", up) as client:
        hit = await until_found(client, "echo back a message", "everything__echo")
        got = await client.call_tool("call_tool", {"name": hit["key"], "arguments": {"message": "hi"}})
        assert got.content[0].text == "Echo: hi"
        got = await client.call_tool("call_tool", {"name": "everything__get-tiny-image"})
        assert "image" in {item.type for item in got.content}
        long = {"name": "everything__trigger-long-running-operation", "arguments": {"duration": 1, "steps": 2}}
        await client.call_tool("call_tool", long, progress_callback=progress)
        assert steps[-1] == (2, 2)
        got = await client.call_tool("call_tool", {"name": "everything__get-resource-links", "arguments": {"count": 1}})
        link = next(item for item in got.content if item.type == "resource_link")
        assert (await client.read_resource(link.uri)).contents
        prompts = [item.name for item in (await client.list_prompts()).prompts]
        assert "everything__simple-prompt" in prompts
        assert (await client.get_prompt("everything__simple-prompt")).messages
        resources = (await client.list_resources()).resources
        assert resources[0].uri.startswith("toolscout://servers/everything/")
        assert (await client.read_resource(resources[0].uri)).contents
