"""Attaching adds two tools, hides the rest, and changes no visible tool."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import ListToolsResult, Tool

from toolscout import InvalidValueError


async def listed(client):
    return [tool.name for tool in (await client.list_tools()).tools]


async def test_two_tools_come_after_the_visible_ones_and_the_rest_is_hidden(registry, make_server, connect, era):
    server = make_server()
    registry.attach(server)
    async with connect(server, era) as client:
        assert await listed(client) == ["add", "tool_search", "execute_tool"]
        await client.call_tool("tool_search", {"query": "email"})
        await client.call_tool("execute_tool", {"name": "sql_query", "arguments": {"query": "x"}})
        assert await listed(client) == ["add", "tool_search", "execute_tool"]
        direct = await client.call_tool("sql_query", {"query": "x"})
        assert direct.is_error


async def test_a_visible_tool_is_listed_and_answers_exactly_as_before(registry, make_server, connect, era):
    plain, attached = make_server(), make_server()
    registry.attach(attached)
    answers = []
    for server in (plain, attached):
        async with connect(server, era) as client:
            answers.append(
                [
                    (await client.list_tools()).tools[0].model_dump_json(),
                    (await client.list_tools()).ttl_ms,
                    (await client.call_tool("add", {"a": 2, "b": 3})).model_dump_json(),
                    (await client.call_tool("absent", {})).model_dump_json(),
                ]
            )
    assert answers[0] == answers[1]


async def test_search_answers_in_the_documented_shape(registry, make_server, connect, era):
    server = make_server()
    registry.attach(server)
    async with connect(server, era) as client:
        got = await client.call_tool("tool_search", {"query": "send_email", "max_results": 1, "ranker": "fuzzy"})
    [hit] = json.loads(got.content[0].text)
    assert hit == {
        "name": "send_email",
        "description": "Send an email to a recipient.",
        "score": 1.0,
        "input_schema": (await registry.get_tool("send_email")).input_schema,
    }
    assert got.structured_content == {"tools": [hit]}


async def test_the_names_of_the_two_tools_can_be_set(registry, make_server, connect):
    server = make_server()
    registry.attach(server, search_name="find", execute_name="run")
    async with connect(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["add", "find", "run"]
        assert "call it with run" in tools["find"].description
        assert "that find found" in tools["run"].description
        got = await client.call_tool("run", {"name": "sql_query", "arguments": {"query": "x"}})
        assert got.content[0].text == "executed: x"


async def test_two_registries_on_one_server_keep_apart(registry, make_registry, make_server, connect):
    server, other = make_server(), make_registry()
    other.register_tool({"name": "other_tool"}, lambda: "other")
    registry.attach(server)
    other.attach(server, search_name="other_search", execute_name="other_execute")
    async with connect(server) as client:
        assert len(await listed(client)) == 5
        assert (await client.call_tool("other_execute", {"name": "other_tool"})).content[0].text == "other"
        assert (await client.call_tool("execute_tool", {"name": "other_tool"})).is_error


async def test_tools_registered_after_attaching_are_found(registry, make_server, connect):
    server = make_server()
    registry.attach(server)
    async with connect(server) as client:
        await client.call_tool("tool_search", {"query": "weather"})
        registry.register_tool({"name": "weather_now", "description": "Weather of a city"}, lambda: "sunny")
        got = await client.call_tool("tool_search", {"query": "weather of a city", "max_results": 1})
        assert got.structured_content["tools"][0]["name"] == "weather_now"


async def test_the_search_tool_says_that_it_only_reads(registry, make_server, connect):
    server = make_server()
    registry.attach(server)
    async with connect(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["tool_search"].annotations.read_only_hint is True
    assert tools["execute_tool"].annotations is None
    assert set(tools["execute_tool"].input_schema["properties"]) == {"name", "arguments"}
    assert tools["execute_tool"].input_schema["required"] == ["name"]


@pytest.mark.parametrize("make_server", ["mcpserver", "fastmcp"], indirect=True)
def test_a_name_that_the_server_has_is_refused_before_anything_is_added(registry, make_server):
    server = make_server()
    with pytest.raises(InvalidValueError, match="already has a tool 'add'"):
        registry.attach(server, execute_name="add")
    registry.attach(server)


async def test_a_low_level_server_keeps_a_tool_of_that_name(registry, connect, caplog):
    async def on_list(_context, _params):
        return ListToolsResult(tools=[Tool(name="execute_tool", input_schema={"type": "object"})])

    async def on_call(_context, params):
        return {"content": [{"type": "text", "text": f"own {params.name}"}], "resultType": "complete"}

    server = Server("s", on_list_tools=on_list, on_call_tool=on_call)
    registry.attach(server)
    async with connect(server) as client:
        assert await listed(client) == ["execute_tool", "tool_search"]
        assert (await client.call_tool("execute_tool", {})).content[0].text == "own execute_tool"
    assert "attach with another name" in caplog.text


async def test_on_a_low_level_server_with_pages_the_two_come_on_the_last(registry, connect, era):
    async def on_list(_context, params):
        name, more = ("two", {}) if params.cursor else ("one", {"nextCursor": "2"})
        tools = [{"name": name, "inputSchema": {"type": "object"}}]
        return {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private", **more}

    server = Server("s", on_list_tools=on_list)
    registry.attach(server)
    async with connect(server, era) as client:
        first = await client.list_tools()
        second = await client.list_tools(cursor=first.next_cursor)
    assert [tool.name for tool in first.tools] == ["one"]
    assert [tool.name for tool in second.tools] == ["two", "tool_search", "execute_tool"]


async def test_a_low_level_server_without_tools_gets_them(registry, connect, era):
    server = Server("s")
    registry.attach(server)
    async with connect(server, era) as client:
        assert await listed(client) == ["tool_search", "execute_tool"]
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("absent", {})


def test_schemas_are_known_without_a_listing_where_the_server_knows_its_own(registry):
    async def nothing_listed(*_: Any) -> ListToolsResult:
        return ListToolsResult(tools=[])

    server = Server("s", on_list_tools=nothing_listed, get_tool_input_schema={"own": {"type": "object"}}.get)
    registry.attach(server)
    assert server.get_tool_input_schema
    assert server.get_tool_input_schema("own") == {"type": "object"}
    assert "query" in (server.get_tool_input_schema("tool_search") or {})["properties"]
    assert server.get_tool_input_schema("absent") is None


async def test_fastmcps_own_client_sees_the_same(registry):
    from fastmcp import Client, FastMCP

    server = FastMCP("fast")
    child = FastMCP("child")
    child.tool(lambda: "c", name="mounted")
    server.mount(child)
    registry.attach(server)
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == ["mounted", "tool_search", "execute_tool"]
        got = await client.call_tool("execute_tool", {"name": "sql_query", "arguments": {"query": "x"}})
        assert got.content[0].text == "executed: x"


def test_what_is_no_server_is_refused(registry):
    with pytest.raises(InvalidValueError, match="cannot be attached to a dict"):
        registry.attach({})
    with pytest.raises(InvalidValueError, match="both tools"):
        registry.attach(MCPServer("s"), search_name="x", execute_name="x")
