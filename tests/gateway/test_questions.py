"""A server asks a question during a call and the client answers, in every combination of eras."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from mcp import Client
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent
from pydantic import FileUrl

from guarantees import guarantee
from raw_client import raw_client, text_of
from scripted import text
from toolscout.errors import CallError
from toolscout.policy.policy_file import Policy
from toolscout.settings import Settings

pytestmark = guarantee("proto:dual-era")

FORM = {"message": "name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 10}
UP = pytest.mark.parametrize("up", ["legacy", "2026-07-28"])
DOWN = pytest.mark.parametrize("down", ["legacy", "2026-07-28"])


async def elicited(_context, _params):
    return ElicitResult(action="accept", content={"name": "Ada"})


async def sampled(_context, _params):
    return CreateMessageResult(role="assistant", content=TextContent(text="Paris"), model="m")


async def rooted(_context):
    return ListRootsResult(roots=[Root(uri=FileUrl("file:///home"))])


ASKED = pytest.mark.parametrize(
    ("method", "params", "seen"),
    [
        ("elicitation/create", FORM, "Ada"),
        ("sampling/createMessage", SAMPLE, "Paris"),
        ("roots/list", {}, "file:///home"),
    ],
)


def asking(down, method, params):
    """Make a tool that asks as a server of that era does, and returns the answer that it got."""

    async def legacy(call):
        return text(str(await call.upstream.ask(method, params)))

    async def modern(call):
        replies = call.extra.get("inputResponses")
        if not replies:
            requests = {"q": {"method": method, "params": params}}
            return {"resultType": "input_required", "inputRequests": requests, "requestState": "opaque-1"}
        assert call.extra["requestState"] == "opaque-1"
        return text(str(replies["q"]), resultType="complete")

    return legacy if down == "legacy" else modern


@UP
@DOWN
@ASKED
async def test_the_answer_of_the_agent_reaches_the_server(open_gateway, demo, up, down, method, params, seen):
    demo.tool("ask", asking(down, method, params))
    callbacks: dict[str, Any] = {
        "elicitation_callback": elicited,
        "sampling_callback": sampled,
        "list_roots_callback": rooted,
    }
    async with open_gateway(demo) as opened, Client(opened.server, mode=up, **callbacks) as client:
        got = await client.call_tool("call_tool", {"name": "demo__ask"})
    assert not got.is_error
    assert seen in text_of(got)


@UP
async def test_a_client_that_cannot_answer_is_a_clear_refusal(open_gateway, demo, up):
    refused = []

    async def asks(call):
        try:
            await call.upstream.ask("elicitation/create", FORM)
        except CallError as error:
            refused.append(error.message)
            raise

    demo.tool("ask", asks)
    async with open_gateway(demo) as opened, Client(opened.server, mode=up, sampling_callback=sampled) as client:
        got = await client.call_tool("call_tool", {"name": "demo__ask"})
    assert got.is_error
    assert "elicitation" in refused[0]
    assert "elicitation" in text_of(got)


@UP
async def test_what_the_gateway_does_not_know_is_not_passed_on(open_gateway, demo, up):
    async def asks(call):
        return text(str(await call.upstream.ask("secrets/list", {})))

    demo.tool("ask", asks)
    async with open_gateway(demo) as opened, Client(opened.server, mode=up, elicitation_callback=elicited) as client:
        got = await client.call_tool("call_tool", {"name": "demo__ask"})
    assert got.is_error


@guarantee("fault:questions")
async def test_a_server_that_asks_400_questions_at_once_asks_none(open_gateway, demo):
    asked = []

    async def answer(_context, _params):
        asked.append(1)
        return ElicitResult(action="accept", content={"name": "Ada"})

    questions = {f"q{number}": {"method": "elicitation/create", "params": FORM} for number in range(400)}
    demo.tool("ask", {"resultType": "input_required", "inputRequests": questions, "requestState": "s"})
    async with open_gateway(demo) as opened, Client(opened.server, mode="legacy", elicitation_callback=answer) as c:
        result = await c.call_tool("call_tool", {"name": "demo__ask"})
    assert result.is_error
    assert not asked
    assert len(demo.calls) == 1


async def test_a_pending_call_is_resumed_once_and_only_with_its_state(open_gateway, demo):
    demo.tool("ask", asking("legacy", "elicitation/create", FORM))
    params = {"name": "call_tool", "arguments": {"name": "demo__ask"}}
    reply = {"question": {"action": "accept", "content": {"name": "Ada"}}}
    async with (
        open_gateway(demo) as opened,
        raw_client(opened.server, "2026-07-28", capabilities={"elicitation": {}}) as client,
    ):
        first = await client.request("tools/call", params)
        assert first["resultType"] == "input_required"
        assert first["inputRequests"] == {"question": {"method": "elicitation/create", "params": FORM}}
        state = first["requestState"]
        forged = await client.request(
            "tools/call", {**params, "requestState": state[:-2] + "xx", "inputResponses": reply}
        )
        assert forged["isError"] is True
        empty = await client.request("tools/call", {**params, "requestState": state})
        assert empty["isError"] is True
        other = {
            "name": "call_tool",
            "arguments": {"name": "demo__echo"},
            "requestState": state,
            "inputResponses": reply,
        }
        assert (await client.request("tools/call", other))["isError"] is True
        done = await client.request("tools/call", {**params, "requestState": state, "inputResponses": reply})
        assert "Ada" in done["content"][0]["text"]
        again = await client.request("tools/call", {**params, "requestState": state, "inputResponses": reply})
        assert again["isError"] is True
    assert len(demo.calls) == 1


async def test_a_pending_call_ends_with_the_gateway(open_gateway, demo):
    ended = asyncio.Event()

    async def asks(call):
        try:
            await call.upstream.ask("elicitation/create", FORM)
        finally:
            ended.set()

    demo.tool("ask", asks)
    async with (
        open_gateway(demo) as opened,
        raw_client(opened.server, "2026-07-28", capabilities={"elicitation": {}}) as client,
    ):
        first = await client.request("tools/call", {"name": "call_tool", "arguments": {"name": "demo__ask"}})
        assert first["resultType"] == "input_required"
    with suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), 5)
    assert ended.is_set()


@guarantee("audit:every-call")
async def test_a_guessed_state_leaves_an_audit_line_and_a_denied_call_is_not_continued(open_gateway, demo, tmp_path):
    demo.tool("ask", asking("legacy", "elicitation/create", FORM))
    params = {"name": "call_tool", "arguments": {"name": "demo__ask"}}
    reply = {"question": {"action": "accept", "content": {"name": "Ada"}}}
    log = tmp_path / "audit.jsonl"
    settings = Settings(reindex_interval_s=0.05, audit=str(log))
    async with (
        open_gateway(demo, settings=settings) as opened,
        raw_client(opened.server, "2026-07-28", capabilities={"elicitation": {}}) as client,
    ):
        first = await client.request("tools/call", params)
        guess = {**params, "requestState": first["requestState"][:-2] + "xx", "inputResponses": reply}
        assert (await client.request("tools/call", guess))["isError"] is True
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert [(line["tool"], line["decision"]) for line in lines] == [("demo__ask", "refused")]
        opened.scout.access.apply_policy(Policy())
        resumed = {**params, "requestState": first["requestState"], "inputResponses": reply}
        assert (await client.request("tools/call", resumed))["isError"] is True
        assert (await client.request("tools/call", resumed))["isError"] is True
    outcomes = [json.loads(line).get("outcome") for line in log.read_text().splitlines()]
    assert "ok" not in outcomes
