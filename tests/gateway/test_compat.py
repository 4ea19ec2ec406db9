"""The registry surface has the names, defaults and fields that agents of other systems use."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest
from mcp import Client

from guarantees import guarantee
from scripted import Scripted, text

pytestmark = guarantee("proto:list-stable")


@pytest.fixture
def currenttime():
    server = Scripted("currenttime")
    zone = {"type": "object", "properties": {"tz_name": {"type": "string"}}, "required": ["tz_name"]}
    server.tool(
        "current_time_by_timezone",
        text("14:30 JST"),
        description="Get the current time for a specific timezone",
        inputSchema=zone,
        annotations={"readOnlyHint": True},
    )
    server.tool("list_timezones", text("Asia/Tokyo"), description="List all timezones that are known")
    return server


@pytest.fixture
def connect(open_gateway, currenttime, demo):
    mail = Scripted("mail")
    mail.tool("send_email", text("sent"), description="Send an email to a recipient")

    @asynccontextmanager
    async def connected():
        async with open_gateway(currenttime, mail, demo, surface="registry") as opened, Client(opened.server) as client:
            yield client

    return connected


async def found(client, tool, **given):
    got = await client.call_tool(tool, given)
    assert not got.is_error, got.content[0].text
    hits = json.loads(got.content[0].text)
    assert got.structured_content == {"result": hits}
    return hits


async def test_the_finder_returns_one_tool_with_the_fields_of_its_document(connect):
    async with connect() as client:
        hits = await found(client, "intelligent_tool_finder", natural_language_query="what time is it in Tokyo")
        assert len(hits) == 1
        assert set(hits[0]) == {
            "tool_name",
            "tool_parsed_description",
            "tool_schema",
            "service_path",
            "service_name",
            "overall_similarity_score",
        }
        assert hits[0]["tool_name"] == "current_time_by_timezone"
        assert hits[0]["service_path"] == "/currenttime"
        assert hits[0]["tool_parsed_description"]["main"] == "Get the current time for a specific timezone"
        assert hits[0]["tool_schema"]["required"] == ["tz_name"]


async def test_the_finder_keeps_to_the_best_services_and_the_number_of_tools(connect):
    async with connect() as client:
        arguments = {"natural_language_query": "time and timezones", "top_n_tools": 10}
        paths = {
            hit["service_path"] for hit in await found(client, "intelligent_tool_finder", **arguments, top_k_services=1)
        }
        assert paths == {"/currenttime"}
        assert len(await found(client, "intelligent_tool_finder", **arguments, top_k_services=3)) > 2


async def test_the_finder_needs_a_query_or_tags(connect):
    async with connect() as client:
        got = await client.call_tool("intelligent_tool_finder", {})
        assert got.is_error
        assert "natural_language_query" in got.content[0].text


async def test_what_the_finder_found_can_be_invoked(connect, currenttime):
    async with connect() as client:
        hit = (await found(client, "intelligent_tool_finder", natural_language_query="current time in a timezone"))[0]
        got = await client.call_tool(
            "invoke_mcp_tool",
            {
                "mcp_registry_url": "https://registry.example/mcpgw/sse",
                "server_name": hit["service_path"],
                "tool_name": hit["tool_name"],
                "arguments": {"tz_name": "Asia/Tokyo"},
            },
        )
        assert got.content[0].text == "14:30 JST"
        assert currenttime.calls[0].arguments == {"tz_name": "Asia/Tokyo"}


async def test_search_registry_tools_returns_what_invoke_takes(connect):
    async with connect() as client:
        hits = await found(client, "search_registry_tools", query="current time in a timezone")
        assert 0 < len(hits) <= 3
        assert {"tool_name", "server_path"} <= set(hits[0])
        assert (hits[0]["server_path"], hits[0]["tool_name"]) == ("/currenttime", "current_time_by_timezone")


async def test_tool_search_returns_names_scores_and_schemas_and_execute_tool_calls_them(connect):
    async with connect() as client:
        hits = await found(client, "tool_search", query="email")
        assert set(hits[0]) == {"name", "description", "score", "input_schema"}
        assert hits[0]["name"] == "mail__send_email"
        assert 0 < hits[0]["score"] <= 1
        got = await client.call_tool("execute_tool", {"name": hits[0]["name"], "arguments": {"to": "a@b"}})
        assert got.content[0].text == "sent"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("search_tools", {"query": "send an email", "max_results": 1, "detail_level": "minimal"}),
        ("search_tools", {"query": "send an email", "top_k": 1}),
        ("list_tools", {"detail_level": "brief"}),
        ("find_by_tags", {"tags": ["email"], "match_mode": "all", "detail_level": "full"}),
        ("get_related_tools", {"tool_name": "send_email", "max_results": 1}),
        ("get_tool_details", {"tool_name": "mail__send_email"}),
        ("call_tool", {"tool_name": "mail__send_email", "arguments": {}}),
        ("tool_search", {"query": "send an email", "limit": 1}),
        ("intelligent_tool_finder", {"query": "send an email"}),
    ],
)
async def test_the_names_that_documents_of_other_systems_use_are_accepted(connect, tool, given):
    async with connect() as client:
        got = await client.call_tool(tool, given)
    assert not got.is_error, got.content[0].text
    bounded = {"max_results", "top_k", "limit"} & given.keys() and tool != "get_related_tools"
    if bounded:
        tools = got.structured_content.get("tools", got.structured_content.get("result"))
        assert len(tools) == 1


async def test_an_unknown_parameter_is_named_with_the_one_that_was_meant(connect):
    async with connect() as client:
        got = await client.call_tool("search_tools", {"query": "send an email", "limits": 1})
    assert got.is_error
    error = got.structured_content["error"]
    assert error["message"] == "search_tools has no parameter 'limits'"
    assert error["suggestions"][0] == "limit"
