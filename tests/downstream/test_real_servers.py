"""Published servers work over every transport."""

import json
from dataclasses import replace

import pytest

from downstreams import ANYONE, opened
from toolscout.errors import CallError
from toolscout.models import Caller


async def tool_names(here, key):
    return {tool["name"] for tool in await here.downstream.servers[key].list_tools()}


async def test_the_servers_of_npm_and_pypi_are_listed_and_called(
    everything_server, filesystem_server, memory_server, time_server, git_server
):
    configs = (everything_server, filesystem_server, memory_server, time_server, git_server)
    folder, repository = filesystem_server.args[-1], git_server.args[-1]
    async with opened(*configs) as here:
        assert {"echo", "get-sum"} <= await tool_names(here, "everything")
        assert "read_text_file" in await tool_names(here, "filesystem")
        assert "create_entities" in await tool_names(here, "memory")
        assert await tool_names(here, "time") == {"get_current_time", "convert_time"}
        assert "git_status" in await tool_names(here, "git")

        echo = await here.call("everything", "echo", {"message": "hi"})
        assert echo["content"] == [{"type": "text", "text": "Echo: hi"}]
        file = await here.call("filesystem", "read_text_file", {"path": f"{folder}/hello.txt"})
        assert file["content"][0]["text"] == "hello"
        graph = await here.call("memory", "read_graph")
        assert graph["structuredContent"] == {"entities": [], "relations": []}
        now = await here.call("time", "get_current_time", {"timezone": "UTC"})
        assert json.loads(now["content"][0]["text"])["timezone"] == "UTC"
        status = await here.call("git", "git_status", {"repo_path": repository})
        assert "No commits yet" in status["content"][0]["text"]

        assert {status.protocol for status in (server.status for server in here.downstream.servers.values())} == {
            "2025-11-25"
        }


@pytest.mark.process
@pytest.mark.parametrize("fixture", ["everything_http", "everything_sse"])
async def test_server_everything_is_reached_over_http_and_sse(fixture, request):
    config = request.getfixturevalue(fixture)
    async with opened(config) as here:
        (key,) = here.downstream.servers
        assert "echo" in await tool_names(here, key)
        for caller in (ANYONE, Caller(tenant="other")):
            echo = await here.call(key, "echo", {"message": "hi"}, caller=caller)
            assert echo["content"] == [{"type": "text", "text": "Echo: hi"}]
        result = await here.downstream.servers[key].request("resources/templates/list", caller=ANYONE)
        assert result["resourceTemplates"]


async def test_a_url_without_a_transport_falls_back_to_sse(everything_sse):
    config = replace(everything_sse, transport="http", transport_guessed=True)
    async with opened(config) as here:
        assert (await here.call("everything-sse", "echo", {"message": "hi"}))["content"][0]["text"] == "Echo: hi"


async def test_an_unknown_tool_gets_the_servers_own_error(everything_server):
    async with opened(everything_server) as here:
        try:
            result = await here.call("everything", "no-such-tool")
            assert result["isError"] is True
        except CallError as error:
            assert error.details["code"]
