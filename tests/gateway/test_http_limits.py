"""Requests that are refused before MCP get status 429 and `Retry-After`, and clients show why."""

from __future__ import annotations

import asyncio
import logging

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from guarantees import guarantee
from guarded import HANDSHAKE, MODERN, WAIT_S, answer_in, guarded
from scripted import Scripted
from toolscout.gateway import http_limits
from toolscout.policy.policy_file import parse_policy

pytestmark = guarantee("load:limits")

ALLOW = '[[allow]]\nwho = ["anyone"]\n'


def retry_after(response: httpx2.Response) -> int:
    """Return the seconds of a 429 answer, whose JSON-RPC error names them too."""
    assert response.status_code == 429
    seconds = int(response.headers["Retry-After"])
    error = response.json()["error"]["data"]
    assert error["code"] == "limit_reached"
    assert error["details"]["retry_after_s"] == seconds
    return seconds


async def test_a_key_takes_no_more_sessions_than_its_own_and_an_ended_one_makes_room():
    async with guarded(max_caller_sessions=3) as served:
        ann, bob = await served.key("acme", "ann"), await served.key("acme", "ann")
        opened = await asyncio.gather(*(served.post(ann, HANDSHAKE) for _ in range(20)))
        sessions = [answer.headers["Mcp-Session-Id"] for answer in opened if answer.status_code == 200]
        assert len(sessions) == 3
        for answer in opened:
            assert answer.status_code == 200 or retry_after(answer) == 60
        assert (await served.post(bob, HANDSHAKE)).status_code == 200, "another key of the same user"
        assert (await served.ask(ann, "tools/list")).status_code == 200, "requests without a session"
        headers = {"Authorization": f"Bearer {ann}", "Mcp-Session-Id": sessions[0]}
        assert (await served.http.delete(served.url, headers=headers)).status_code == 200
        assert (await served.post(ann, HANDSHAKE)).status_code == 200


async def test_a_key_over_its_requests_per_minute_waits_and_others_do_not():
    policy = parse_policy(f"{ALLOW}[limits]\nrequests_per_minute = 3")
    async with guarded({"acme": [Scripted("crm")]}, policy=policy) as served:
        ann, bob = await served.key("acme", "ann"), await served.key("acme", "bob")
        for _ in range(3):
            assert (await served.ask(ann, "tools/list")).status_code == 200
        for refused in (await served.ask(ann, "tools/list"), await served.post(ann, HANDSHAKE)):
            assert 1 <= retry_after(refused) <= 20
        assert (await served.ask(bob, "tools/list")).status_code == 200


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_client_of_either_era_shows_which_limit_is_reached(mode):
    policy = parse_policy(f"{ALLOW}[limits]\nrequests_per_minute = 10")
    async with guarded({"acme": [Scripted("crm")]}, policy=policy) as served:
        headers = {"Authorization": f"Bearer {await served.key('acme', 'ann')}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http,
            Client(streamable_http_client(served.url, http_client=http), mode=mode) as client,
        ):
            with pytest.raises(MCPError, match="the limit of 10 requests per minute"):
                for _ in range(10):
                    await client.call_tool("search_tools", {"query": "anything"})


async def test_an_address_that_sends_wrong_keys_gets_429_and_reads_no_store(monkeypatch, caplog):
    monkeypatch.setattr(http_limits, "REFUSALS_PER_MINUTE", 5)
    caplog.set_level(logging.WARNING, logger="toolscout")
    async with guarded(reindex_interval_s=60) as served:
        good = await served.key("acme", "ann")
        assert (await served.ask(good, "tools/list")).status_code == 200
        unknown = [f"tsk_{letter * 10}_{'s' * 43}" for letter in "abcdefghijk"]
        answers = [await served.ask(token, "tools/list") for token in unknown[:5]]
        assert {answer.status_code for answer in answers} == {401}
        served.store.used.clear()
        for token in unknown[5:]:
            assert 1 <= retry_after(await served.ask(token, "tools/list")) <= 12
        for nothing in (None, "letmein"):
            assert 1 <= retry_after(await served.ask(nothing, "tools/list")) <= 12
        assert served.store.used == []
        assert "from this address" in caplog.messages[-1]
        listed = await served.ask(good, "tools/list")
        assert listed.status_code == 200, "a valid key of the same address"
        assert answer_in(listed.text)["result"]["tools"]


async def test_the_addresses_of_one_ipv6_network_count_together_and_those_of_ipv4_alone(monkeypatch):
    monkeypatch.setattr(http_limits, "REFUSALS_PER_MINUTE", 5)
    async with guarded() as served:

        async def status(address: str) -> int:
            return (await served.post("wrong", HANDSHAKE, X_Forwarded_For=address)).status_code

        assert [await status(f"2001:db8::{number}") for number in range(1, 7)] == [401] * 5 + [429]
        assert await status("2001:db8:0:1::1") == 401, "another network"
        assert [await status(f"::ffff:192.0.2.{number}") for number in range(1, 7)] == [401] * 6
