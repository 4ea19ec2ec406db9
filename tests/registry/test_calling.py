"""Calls through `execute_tool` are checked and sent exactly once, with errors that a model can read."""

from __future__ import annotations

import json
from typing import Any

import fastmcp
import pytest
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
)

from toolscout import InvalidArgumentsError, ToolNotFoundError


def error_of(result):
    assert result.is_error
    return json.loads(result.content[0].text)["error"]


async def test_a_slip_in_the_arguments_is_repaired_noted_and_the_call_made_once(registry):
    made: list[Any] = []

    def count(n: int) -> str:
        made.append(n)
        return "ok"

    registry.register_tool(
        {"name": "count", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        count,
    )
    result = await registry.execute("count", '{"n": "7"}')
    assert made == [7]
    assert result.meta["toolscout/repairs"] == [
        "arguments were a JSON string; they are an object now",
        "n was string; it is integer now",
    ]


async def test_arguments_that_do_not_fit_are_refused_with_the_schema_and_nothing_is_sent(registry):
    made: list[Any] = []
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    registry.register_tool({"name": "count", "inputSchema": schema}, made.append)
    error = error_of(await registry.execute("count", {"n": "many"}))
    assert (error["code"], error["details"]["input_schema"]) == ("invalid_arguments", schema)
    assert error["message"].startswith("count does not accept")
    assert made == []
    with pytest.raises(InvalidArgumentsError):
        await registry.call_tool("count", {})


async def test_an_unknown_name_is_an_error_that_names_the_nearest(registry):
    error = error_of(await registry.execute("send_mail"))
    assert error["code"] == "tool_not_found"
    assert error["suggestions"] == ["send_email"]
    with pytest.raises(ToolNotFoundError):
        await registry.call_tool("send_mail")


async def test_a_tool_error_reaches_the_model_and_any_other_exception_does_not(registry, caplog):
    @registry.tool
    def refuses() -> str:
        raise ToolError("the mailbox is full")

    @registry.tool
    async def crashes() -> str:
        raise RuntimeError("secret detail")

    registry.register_tool({"name": "handler_crashes"}, lambda: 1 / 0)
    refused = await registry.execute("refuses")
    assert refused.is_error
    assert refused.content[0].text == "Error executing tool refuses: the mailbox is full"
    for name in ("crashes", "handler_crashes"):
        crashed = await registry.execute(name)
        assert crashed.is_error
        assert crashed.content[0].text == f"Error executing tool {name}"
    assert "secret detail" in caplog.text


async def test_fastmcps_own_tool_error_reaches_the_model_too(registry):
    @registry.tool
    def refuses() -> str:
        raise fastmcp.exceptions.ToolError("the mailbox is full")

    assert (await registry.execute("refuses")).content[0].text.endswith("the mailbox is full")


async def test_an_error_of_the_protocol_stays_one(registry, connect, era):
    server = Server("s")
    registry.attach(server)

    @registry.tool
    async def protocol() -> str:
        raise MCPError(code=-32042, message="not so", data={"k": 1})

    async with connect(server, era) as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("execute_tool", {"name": "protocol"})
    assert (raised.value.error.code, raised.value.error.data) == (-32042, {"k": 1})


async def test_every_kind_of_content_and_the_metadata_pass_through(registry, connect, make_server, era):
    server = make_server()
    registry.attach(server)
    original = CallToolResult(
        content=[
            TextContent(text="t", _meta={"part": 1}),
            ImageContent(data="aGk=", mime_type="image/png"),
            ResourceLink(uri="file:///x", name="x"),
        ],
        structured_content={"rows": [None, 1]},
        is_error=True,
        _meta={"vendor/k": [1]},
    )
    registry.register_tool({"name": "give"}, lambda: original)
    async with connect(server, era) as client:
        got = await client.call_tool("execute_tool", {"name": "give"})
    assert (got.content, got.structured_content, got.is_error) == (original.content, original.structured_content, True)
    assert got.meta["vendor/k"] == [1]


async def test_a_hidden_tool_uses_the_context_of_the_request(registry, connect, make_server, era):
    server = make_server()
    registry.attach(server)
    seen = []

    @registry.tool
    async def works(steps: int, ctx: Context) -> str:
        for step in range(steps):
            await ctx.report_progress(step + 1, steps)
        return ctx.request_context.protocol_version

    async def progressed(progress, total, _message):
        seen.append((progress, total))

    async with connect(server, era) as client:
        got = await client.call_tool(
            "execute_tool", {"name": "works", "arguments": {"steps": 2}}, progress_callback=progressed
        )
        assert got.content[0].text == client.protocol_version
    assert seen == [(1, 2), (2, 2)]


async def test_a_hidden_tool_may_ask_for_input_in_the_modern_era(registry, connect, make_server):
    server = make_server()
    registry.attach(server)
    form = {"type": "object", "properties": {"name": {"type": "string"}}}

    @registry.tool
    async def greets(ctx: Context) -> str | InputRequiredResult:
        if not ctx.input_responses:
            params = ElicitRequestFormParams(message="who?", requested_schema=form)
            return InputRequiredResult(input_requests={"who": ElicitRequest(params=params)}, request_state="s1")
        reply = ctx.input_responses["who"]
        assert isinstance(reply, ElicitResult)
        assert reply.content
        return f"hello {reply.content['name']} ({ctx.request_state})"

    async def answers(_context, _params):
        return ElicitResult(action="accept", content={"name": "Ann"})

    async with connect(server, "2026-07-28", elicitation_callback=answers) as client:
        got = await client.call_tool("execute_tool", {"name": "greets"})
    assert got.content[0].text == "hello Ann (s1)"


async def test_outside_of_a_request_the_context_says_so(registry):
    @registry.tool
    def asks(ctx: Context) -> str:
        return str(ctx.request_context)

    assert (await registry.execute("asks")).is_error


async def test_a_fastmcp_handler_gets_fastmcps_context(registry, connect):
    server = fastmcp.FastMCP("fast")

    @registry.tool
    async def asynchronous(x: int, ctx: fastmcp.Context) -> str:
        assert ctx
        return f"{ctx.fastmcp.name} {x}"

    @registry.tool
    def synchronous(ctx: fastmcp.Context | None, x: int) -> str:
        assert ctx
        return f"{ctx.fastmcp.name} {x}"

    registry.register_tool({"name": "ready"}, lambda: "no context")
    registry.attach(server)
    assert list((await registry.get_tool("asynchronous")).input_schema["properties"]) == ["x"]
    async with connect(server) as client:
        for name in ("asynchronous", "synchronous"):
            got = await client.call_tool("execute_tool", {"name": name, "arguments": {"x": 1}})
            assert got.content[0].text == "fast 1"


async def test_a_name_is_found_however_its_letters_are_composed(make_registry):
    registry = make_registry()
    registry.register_tool({"name": "cafe\u0301"}, lambda: "ok")
    assert [match.tool.name for match in await registry.search("caf\u00e9", ranker="fuzzy")] == ["caf\u00e9"]
    for name in ("cafe\u0301", "caf\u00e9", " caf\u00e9 "):
        assert (await registry.call_tool(name)).content[0].text == "ok"


async def test_arguments_of_the_two_tools_themselves_are_checked(registry, connect, make_server, era):
    server = make_server()
    registry.attach(server)
    async with connect(server, era) as client:
        assert (await client.call_tool("execute_tool", {"arguments": {}})).is_error
        assert (await client.call_tool("tool_search", {"query": "x", "max_results": 0})).is_error
        unknown = await client.call_tool("tool_search", {"query": " "})
        assert error_of(unknown)["code"] == "empty_query"


async def test_arguments_beside_the_name_are_gathered_and_that_is_noted(registry, connect, make_server):
    server = make_server()
    registry.attach(server)
    async with connect(server) as client:
        got = await client.call_tool("execute_tool", {"name": "sql_query", "query": "x"})
        assert got.content[0].text == "executed: x"
        assert got.meta["toolscout/repairs"] == ["arguments stood beside the name; they are gathered now"]
        assert (await client.call_tool("execute_tool", {"name": "sql_query", "arguments": {}, "query": "x"})).is_error
