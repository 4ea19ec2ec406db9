"""Calls through the gateway return the server's own result, in both protocol eras."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from mcp import MCPError

from guarantees import guarantee
from raw_client import raw_client
from scripted import Scripted, text
from toolscout.mcp_tools import REPAIRS
from toolscout.settings import Settings

ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


async def called(client, tool, name, arguments=None, **more):
    params = {"name": name, **({"arguments": arguments} if arguments is not None else {}), **more}
    return await client.request("tools/call", {"name": tool, "arguments": params})


@guarantee("proto:passthrough")
@ERAS
async def test_unknown_fields_survive_the_gateway(open_gateway, demo, era):
    result = {
        "content": [
            {"type": "text", "text": "hi", "vendorInner": {"a": None}},
            {"type": "resource_link", "uri": "demo://a", "name": "a", "size": 3},
            {"type": "hologram", "frames": [1, 2]},
            {"type": "image", "data": "AAAA", "mimeType": "image/png", "annotations": {"audience": ["user"]}},
        ],
        "structuredContent": {"deep": {"x": None}},
        "isError": True,
        "_meta": {"vendor/trace": [1]},
        "vendorTop": {"kept": True},
    }
    demo.tool("strange", result)
    async with open_gateway(demo) as opened, raw_client(opened.server, era) as client:
        got = await called(client, "call_tool", "demo__strange")
    assert {name: value for name, value in got.items() if name != "resultType"} == result
    assert ("resultType" in got) == (era != "legacy")


@guarantee("proto:passthrough")
@ERAS
async def test_the_agents_own_meta_travels_with_the_call_and_the_envelope_does_not(open_gateway, demo, era):
    async with open_gateway(demo) as opened, raw_client(opened.server, era) as client:
        params = {
            "name": "call_tool",
            "arguments": {"name": "demo__echo"},
            "_meta": {"vendor/x": 1, "traceparent": "t"},
        }
        await client.request("tools/call", params)
    assert demo.calls[0].extra["_meta"] == {"vendor/x": 1, "traceparent": "t"}


@guarantee("proto:passthrough")
@ERAS
async def test_progress_of_the_server_reaches_the_agent(open_gateway, demo, era):
    async def working(call):
        for step in (1, 2, 3):
            await call.upstream.progress(step, 3, f"step {step}")
        return text("done")

    demo.tool("work", working)
    seen = []

    async def on_progress(progress, total, message):
        seen.append((progress, total, message))

    async with open_gateway(demo) as opened, raw_client(opened.server, era) as client:
        params = {"name": "call_tool", "arguments": {"name": "demo__work"}}
        await client.request("tools/call", params, on_progress=on_progress)
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@guarantee("load:cancel")
@ERAS
async def test_an_agent_that_gives_up_ends_the_call_at_the_server(open_gateway, demo, era):
    started, ended = asyncio.Event(), asyncio.Event()

    async def endless(_call):
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    demo.tool("endless", endless)
    async with open_gateway(demo) as opened, raw_client(opened.server, era) as client:
        waiting = asyncio.create_task(called(client, "call_tool", "demo__endless"))
        await asyncio.wait_for(started.wait(), 5)
        waiting.cancel()
        await asyncio.wait_for(ended.wait(), 5)


@guarantee("proto:passthrough")
@ERAS
async def test_small_errors_in_the_arguments_are_repaired_and_reported(open_gateway, demo, era):
    async with open_gateway(demo) as opened, raw_client(opened.server, era) as client:
        got = await called(client, "call_read_tool", "demo__count_sheep", '{"count": "3"}')
        assert demo.calls[-1].arguments == {"count": 3}
        assert got["_meta"][REPAIRS] == [
            "arguments were a JSON string; they are an object now",
            "count was string; it is integer now",
        ]
        got = await client.request(
            "tools/call", {"name": "call_tool", "arguments": {"name": "demo__count_sheep", "count": 4}}
        )
        assert demo.calls[-1].arguments == {"count": 4}
        assert REPAIRS in got["_meta"]


@guarantee("fault:changed")
@ERAS
async def test_a_definition_that_changed_since_it_was_found_is_not_called(open_gateway, demo, era):
    async with open_gateway(demo) as opened, raw_client(opened.server, era) as client:
        answer = await client.request("tools/call", {"name": "search_tools", "arguments": {"query": "count sheep"}})
        hit = answer["structuredContent"]["tools"][0]
        assert hit["key"] == "demo__count_sheep"
        good = await called(client, hit["call_with"], hit["key"], {"count": 1}, version=hit["version"])
        assert not good.get("isError")
        demo.tool("count_sheep", text("new"), description="Count goats instead", annotations={"readOnlyHint": True})
        await opened.scout.index([demo])
        sent = len(demo.calls)
        bad = await called(client, hit["call_with"], hit["key"], {"count": 1}, version=hit["version"])
    error = bad["structuredContent"]["error"]
    assert bad["isError"] is True
    assert error["code"] == "definition_changed"
    assert error["details"]["input_schema"] == {"type": "object"}
    assert len(demo.calls) == sent


@guarantee("access:one-predicate")
@ERAS
async def test_the_reading_door_refuses_a_tool_that_may_write(open_gateway, demo, era):
    async with open_gateway(demo) as opened, raw_client(opened.server, era) as client:
        got = await called(client, "call_read_tool", "demo__send_letter")
        assert got["isError"] is True
        assert got["structuredContent"]["error"]["code"] == "not_read_only"
        assert not demo.calls
        assert not (await called(client, "call_tool", "demo__send_letter")).get("isError")


async def refusals(opened, era, key):
    """Return everything that the gateway answers about a key that the caller may not see."""
    answers: list[Any] = []
    async with raw_client(opened.server, era) as client:
        for tool, where in (("call_tool", "name"), ("get_tool_details", "names"), ("get_related_tools", "name")):
            answer = await client.request("tools/call", {"name": tool, "arguments": {where: key}})
            assert answer["isError"] is True
            answers.append(answer)
        with pytest.raises(MCPError) as raised:
            await client.request("tools/call", {"name": key, "arguments": {}})
        answers.append((raised.value.code, raised.value.message, raised.value.data))
        answers.append(await client.request("tools/list"))
    return answers


@guarantee("access:absent-equals-forbidden")
@ERAS
async def test_a_hidden_tool_and_an_absent_one_give_the_same_answer(open_gateway, demo, era):
    key = "demo__secret_ledger"
    async with open_gateway(demo, surface="browse", core=[key]) as opened:
        absent = await refusals(opened, era, key)
    demo.tool("secret_ledger", text("secret"), description="Read the secret ledger")
    async with open_gateway(demo, surface="browse", core=[key]) as opened:
        await opened.scout.set_enabled(key, enabled=False)
        assert await refusals(opened, era, key) == absent
    assert not demo.calls


@guarantee("fault:huge")
@ERAS
async def test_a_result_over_the_cap_is_cut_and_can_be_read_whole(open_gateway, demo, era):
    whole = text("x" * 50_000 + "end", structuredContent={"n": 1})
    demo.tool("big", whole)
    settings = Settings(max_result_bytes=5_000)
    async with open_gateway(demo, settings=settings) as opened, raw_client(opened.server, era) as client:
        got = await called(client, "call_tool", "demo__big")
        assert len(json.dumps(got)) < 6_000
        assert "cut by the gateway" in got["content"][-2]["text"]
        link = got["content"][-1]
        assert link["type"] == "resource_link"
        read = await client.request("resources/read", {"uri": link["uri"]})
        assert json.loads(read["contents"][0]["text"]) == whole
        with pytest.raises(MCPError) as raised:
            await client.request("resources/read", {"uri": link["uri"][:-1] + "_"})
        assert raised.value.code == (-32002 if era == "legacy" else -32602)


@guarantee("secret:nowhere")
@ERAS
async def test_a_bug_of_ours_shows_no_detail(open_gateway, demo, era, monkeypatch, caplog):
    async def broken(*_args, **_named):
        raise RuntimeError("canary-4711")

    async with open_gateway(demo) as opened, raw_client(opened.server, era) as client:
        monkeypatch.setattr(opened.scout, "call_tool", broken)
        monkeypatch.setattr(opened.scout, "search_tools", broken)
        got = [
            await called(client, "call_tool", "demo__echo"),
            await client.request("tools/call", {"name": "search_tools", "arguments": {"query": "x"}}),
        ]
    for answer in got:
        assert answer["isError"] is True
        assert answer["structuredContent"]["error"]["code"] == "error"
        assert "canary" not in json.dumps(answer)


@guarantee("proto:malformed")
@ERAS
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 5},
        {"name": "call_tool", "arguments": []},
        {"name": "call_tool", "arguments": "x"},
        {"name": "nope"},
    ],
)
async def test_a_request_that_makes_no_sense_is_an_error_of_the_protocol(open_gateway, demo, era, params):
    async with open_gateway(demo) as opened, raw_client(opened.server, era) as client:
        with pytest.raises(MCPError) as raised:
            await client.request("tools/call", params)
        assert raised.value.code == -32602
        assert (await client.request("tools/list"))["tools"]
    assert not demo.calls


@guarantee("proto:malformed")
@ERAS
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("call_tool", {}),
        ("call_tool", {"name": None}),
        ("call_tool", {"name": "demo__echo", "version": 7}),
        ("call_tool", {"name": "demo__count_sheep", "arguments": {"count": {}}}),
        ("search_tools", {}),
        ("search_tools", {"query": 7}),
        ("search_tools", {"query": ""}),
        ("search_tools", {"query": []}),
        ("search_tools", {"query": "x", "limit": 0}),
        ("search_tools", {"query": "x", "limit": 10_000}),
        ("search_tools", {"query": "x" * 1_000_000}),
        ("search_tools", {"query": ["x"] * 1_000}),
        ("search_tools", {"query": "x", "detail": "all"}),
        ("search_tools", {"query": "x", "server": "demo"}),
        ("get_tool_details", {"names": ["demo__echo"], "detail": "full"}),
        ("get_tool_details", {"names": []}),
    ],
)
async def test_wrong_arguments_are_a_result_that_says_what_to_change(open_gateway, demo, era, tool, given):
    async with open_gateway(demo) as opened, raw_client(opened.server, era) as client:
        got = await client.request("tools/call", {"name": tool, "arguments": given})
    assert got["isError"] is True
    error = got["structuredContent"]["error"]
    assert error["message"] and error["hint"]
    assert json.loads(got["content"][0]["text"]) == got["structuredContent"]
    assert len(json.dumps(got)) < 20_000
    assert not demo.calls


@guarantee("proto:malformed")
@pytest.mark.parametrize(
    ("filters", "dropped"),
    [
        ({"servers": ["nope"]}, "servers: no tool is of a server 'nope'"),
        ({"category": "nope"}, "category: no tool is in a category 'nope'"),
        ({"tags": ["nope"], "servers": ["demo"]}, "tags: no tool carries a tag 'nope'"),
        ({"tags": ["nope"], "match": "all", "category": "nope"}, "tags: no tool carries a tag 'nope'"),
    ],
)
async def test_a_filter_that_excludes_every_tool_is_left_out_and_the_answer_says_so(
    open_gateway, demo, filters, dropped
):
    async with open_gateway(demo) as opened, raw_client(opened.server, "2026-07-28") as client:
        plain = await client.request("tools/call", {"name": "search_tools", "arguments": {"query": "echo"}})
        request = {"name": "search_tools", "arguments": {"query": "echo", **filters}}
        got = await client.request("tools/call", request)
    keys = [tool["key"] for tool in got["structuredContent"]["tools"]]
    assert keys == [tool["key"] for tool in plain["structuredContent"]["tools"]] != []
    assert f"Searched without {dropped}." in got["structuredContent"]["suggestions"]
    assert f"Searched without {dropped}." in got["content"][0]["text"]


@guarantee("proto:malformed")
@pytest.mark.parametrize("name", ["tags", "servers"])
async def test_a_long_filter_that_is_left_out_makes_no_long_answer(open_gateway, demo, name):
    async with open_gateway(demo) as opened, raw_client(opened.server, "2026-07-28") as client:
        request = {"name": "search_tools", "arguments": {"query": "echo", name: ["x" * 50_000]}}
        got = await client.request("tools/call", request)
    assert f"Searched without {name}: " in got["content"][0]["text"]
    assert len(json.dumps(got)) < 20_000


@guarantee("proto:malformed")
async def test_a_call_of_a_key_that_does_not_exist_is_answered_with_tools_that_it_may_have_meant(open_gateway, demo):
    async with open_gateway(demo) as opened, raw_client(opened.server, "2026-07-28") as client:
        got = await client.request("tools/call", {"name": "call_tool", "arguments": {"name": "echo_a_text"}})
    assert got["isError"] is True
    assert got["structuredContent"]["error"]["code"] == "tool_not_found"
    assert "- demo__echo (call_" in got["content"][1]["text"]
    assert not demo.calls


@guarantee("proto:malformed")
async def test_names_of_arguments_help_to_find_what_an_invented_key_means(open_gateway, demo):
    schema = {"type": "object", "properties": {"recording_sid": {"type": "string"}}}
    demo.tool("remove_audio", description="Delete the recording of a call", inputSchema=schema)
    async with open_gateway(demo) as opened, raw_client(opened.server, "2026-07-28") as client:
        call = {"name": "run_it", "arguments": {"recording_sid": "RE1"}}
        got = await client.request("tools/call", {"name": "call_tool", "arguments": call})
    assert got["content"][1]["text"].startswith("- demo__remove_audio (call_")
    assert not demo.calls


@guarantee("proto:malformed")
@pytest.mark.parametrize("caller", ["call_tool", "call_read_tool"])
async def test_a_search_that_a_model_wraps_into_a_call_is_answered(open_gateway, demo, caller):
    search = {"name": "search_tools", "arguments": {"query": "echo"}}
    async with open_gateway(demo) as opened, raw_client(opened.server, "2026-07-28") as client:
        wrapped = await client.request("tools/call", {"name": caller, "arguments": search})
        plain = await client.request("tools/call", search)
        nested = await client.request(
            "tools/call", {"name": caller, "arguments": {"name": "call_tool", "arguments": {"name": "demo__echo"}}}
        )
    assert wrapped["content"] == plain["content"]
    assert nested["structuredContent"]["error"]["code"] == "tool_not_found"
    assert not demo.calls


@guarantee("proto:malformed")
async def test_the_placeholders_of_an_answer_are_not_sent_as_arguments(open_gateway, demo):
    async with open_gateway(demo) as opened, raw_client(opened.server, "2026-07-28") as client:
        call = {"name": "demo__echo", "arguments": {"text": "<string>"}}
        got = await client.request("tools/call", {"name": "call_tool", "arguments": call})
    assert got["structuredContent"]["error"]["code"] == "invalid_arguments"
    assert got["structuredContent"]["error"]["message"] == "text is still the placeholder <string>"
    assert not demo.calls


@guarantee("proto:malformed")
async def test_filters_that_leave_only_weak_hits_are_told_what_they_exclude(open_gateway, demo):
    demo.tool("send_invoice", description="Send an invoice to a customer by email")
    other = Scripted("other")
    other.tool("water_plants", description="Water the plants in the office")
    async with open_gateway(demo, other) as opened, raw_client(opened.server, "2026-07-28") as client:
        search = {"query": "send an invoice to a customer by email", "servers": ["other"]}
        got = await client.request("tools/call", {"name": "search_tools", "arguments": search})
    assert "Without servers: demo__send_invoice (strong fit)." in got["content"][0]["text"]
    assert {tool["server"] for tool in got["structuredContent"]["tools"]} == {"other"}


@guarantee("proto:malformed")
async def test_a_version_that_a_model_invents_is_ignored_and_one_of_another_definition_is_not(open_gateway, demo):
    async with open_gateway(demo) as opened, raw_client(opened.server, "2026-07-28") as client:
        call = {"name": "demo__echo", "arguments": {"text": "hello"}}
        invented = await client.request("tools/call", {"name": "call_tool", "arguments": {**call, "version": "latest"}})
        old = await client.request("tools/call", {"name": "call_tool", "arguments": {**call, "version": "0" * 12}})
    assert not invented.get("isError")
    assert invented["_meta"]["toolscout/repairs"] == ["version is not that of a hit; it is ignored"]
    assert old["structuredContent"]["error"]["code"] == "definition_changed"
    assert len(demo.calls) == 1


@guarantee("proto:malformed")
async def test_a_misspelt_filter_is_an_error_and_never_ignored(open_gateway, demo):
    async with open_gateway(demo, surface="browse") as opened, raw_client(opened.server, "2026-07-28") as client:
        request = {"name": "search_tools", "arguments": {"query": "echo", "server": "demo"}}
        error = (await client.request("tools/call", request))["structuredContent"]["error"]
        assert (error["code"], error["suggestions"][0]) == ("invalid_arguments", "servers")
        request = {
            "name": "list_categories",
            "arguments": {"random_string": "hosts send one where there is nothing to send"},
        }
        assert "isError" not in await client.request("tools/call", request)
