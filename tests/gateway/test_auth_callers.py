"""Lists, results, pending calls, sessions, resources and notifications belong to one caller."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ToolsListChanged

from fake_http import fake_http
from guarantees import guarantee
from guarded import HANDSHAKE, MODERN, WAIT_S, guarded
from scripted import Scripted, text
from serving import serving
from toolscout import Caller, Scout
from toolscout.gateway import pending_calls
from toolscout.policy.policy_file import parse_policy

ELICITS: dict[str, Any] = {"elicitation": {"form": {}}}
QUESTION = {"message": "Really?", "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}}}


def server(key, *names):
    """Script a server whose tools have these names."""
    made = Scripted(key)
    for name in names:
        made.tool(name, description=f"{name} things of the {key} department")
    return made


@pytest.fixture
def crm():
    """Return the server of one tenant, which asks questions, returns long results, and has a resource and a prompt."""
    made = server("crm", "list_customers", "shared_name")

    async def asks(call):
        reply = await call.upstream.ask("elicitation/create", QUESTION)
        return text(f"they said {reply['content']['ok']}")

    made.tool("delete_customer", asks, description="Delete a customer for good")
    made.tool("export", text("secret-of-acme " * 30_000), description="Export all customers at once")
    made.requests["resources/list"] = {"resources": [{"uri": "crm://terms", "name": "terms"}]}
    made.requests["resources/read"] = lambda params: {"contents": [{"uri": params["uri"], "text": "acme terms"}]}
    made.requests["prompts/list"] = {"prompts": [{"name": "greet"}]}
    made.requests["prompts/get"] = {"messages": []}
    return made


@guarantee("tenant:isolation", "access:absent-equals-forbidden")
async def test_two_tenants_are_listed_what_is_theirs(crm):
    async with guarded({"acme": [crm], "zeta": [server("hr", "list_staff")]}, surface="all") as served:
        acme, zeta = await served.key("acme", "ann"), await served.key("zeta", "zoe")
        for _ in range(3):
            assert set(await served.names(acme)) == {
                "crm__list_customers",
                "crm__shared_name",
                "crm__delete_customer",
                "crm__export",
            }
            assert await served.names(zeta) == ["hr__list_staff"]
        listed = (await served.told(acme, "tools/list"))["result"]
        assert listed["cacheScope"] == "private"


ASKED: list[tuple[str, Any]] = [
    ("call_tool", {"name": "crm__export", "arguments": {}}),
    ("call_read_tool", {"name": "crm__export", "arguments": {}}),
    ("call_tool", {"name": "hr__list_staff", "arguments": {}}),
    ("get_tool_details", {"names": ["crm__export", "hr__list_staff"]}),
    ("get_tool_details", {"names": ["crm__list_customers", "crm__export"]}),
    ("search_tools", {"query": "export all customers at once", "limit": 20, "detail": "full"}),
    ("search_tools", {"query": "list staff of the hr department", "limit": 20}),
    ("search_tools", {"query": "list staff", "servers": ["hr"]}),
    ("search_tools", {"query": "export", "tags": ["export"]}),
    ("list_tools", {}),
    ("list_tools", {"server": "hr"}),
    ("list_categories", {}),
    ("find_by_tags", {"tags": ["crm", "export"]}),
    ("find_by_tags", {"tags": ["export"]}),
    ("get_related_tools", {"name": "crm__list_customers"}),
    ("get_related_tools", {"name": "crm__export"}),
]


@guarantee("access:absent-equals-forbidden")
async def test_a_forbidden_tool_looks_like_an_absent_one(crm):
    """The same requests are sent to a gateway with hidden tools and to one without them."""
    policy = parse_policy('[[allow]]\nwho = ["tenant:acme"]\ntools = ["crm__list_customers"]\n')
    bare = server("crm", "list_customers")
    worlds = []
    for tools in ({"acme": [crm], "zeta": [server("hr", "list_staff")]}, {"acme": [bare]}):
        async with guarded(tools, policy=policy, surface="browse") as served:
            tokens = await served.key("acme", "ann"), await served.key("zeta", "zoe")
            requests = [(token, *question) for token in tokens for question in ASKED]
            worlds.append(
                [re.sub(r"took_ms\W+[\d.]+", "", json.dumps(await served.call(*question))) for question in requests]
            )
            worlds[-1] += [json.dumps(await served.told(token, "tools/list")) for token in tokens]
    for question, there, gone in zip([*ASKED, *ASKED, "the lists", "the lists"], *worlds, strict=True):
        assert there == gone, question
    assert not crm.calls


@guarantee("access:absent-equals-forbidden")
async def test_a_visible_tool_that_may_not_be_called_gives_a_clear_error(crm):
    policy = parse_policy('[[allow]]\nwho = ["tenant:acme"]\nmay = "see"\n')
    async with guarded({"acme": [crm]}, policy=policy) as served:
        acme = await served.key("acme", "ann")
        result = await served.call(acme, "call_tool", {"name": "crm__export", "arguments": {}})
        assert result["isError"]
        assert result["structuredContent"]["error"]["code"] == "not_allowed"
        assert not crm.calls
        assert (await served.told(acme, "resources/list"))["result"]["resources"] == []


@guarantee("load:limits")
async def test_a_call_over_the_limit_is_a_tool_error_with_the_time_to_retry(crm):
    policy = parse_policy('[limits]\ncalls_per_minute = 2\n\n[[allow]]\nwho = ["anyone"]\n')
    async with guarded({"acme": [crm]}, policy=policy) as served:
        ann, bob = await served.key("acme", "ann"), await served.key("acme", "bob")
        wanted = {"name": "crm__list_customers", "arguments": {}}
        results = [await served.call(ann, "call_tool", wanted) for _ in range(3)]
        assert [bool(result.get("isError")) for result in results] == [False, False, True]
        error = results[2]["structuredContent"]["error"]
        assert error["code"] == "limit_reached"
        assert 1 <= error["details"]["retry_after_s"] <= 60
        assert not (await served.call(bob, "call_tool", wanted)).get("isError")
        assert len(crm.calls) == 3


@guarantee("tenant:isolation")
async def test_a_session_serves_only_the_caller_that_opened_it(crm):
    async with guarded({"acme": [crm], "zeta": [server("hr", "list_staff")]}, surface="all") as served:
        ann, second, zoe = [await served.key(*who) for who in (("acme", "ann"), ("acme", "ann"), ("zeta", "zoe"))]
        opened = await served.post(ann, HANDSHAKE)
        session = opened.headers["mcp-session-id"]
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await served.post(ann, initialized, Mcp_Session_Id=session)).status_code == 202
        wanted = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        absent = await served.post(zoe, wanted, Mcp_Session_Id="0" * 32)
        for thief in (zoe, second):
            stolen = await served.post(thief, wanted, Mcp_Session_Id=session)
            assert (stolen.status_code, stolen.text) == (absent.status_code, absent.text) == (404, absent.text)
            headers = {"Authorization": f"Bearer {thief}", "Mcp-Session-Id": session, "Accept": "text/event-stream"}
            assert (await served.http.get(served.url, headers=headers)).status_code == 404
            assert (await served.http.delete(served.url, headers=headers)).status_code == 404
        assert (await served.post(None, wanted, Mcp_Session_Id=session)).status_code == 401
        mine = await served.post(ann, wanted, Mcp_Session_Id=session)
        assert "crm__export" in mine.text


@guarantee("tenant:isolation")
async def test_a_session_of_a_key_that_is_revoked_ends_with_it(crm):
    async with guarded({"acme": [crm]}) as served:
        ann = await served.key("acme", "ann")
        session = (await served.post(ann, HANDSHAKE)).headers["mcp-session-id"]
        await served.scout.api_keys.revoke(ann.split("_")[1])
        served.clock.now += 1.01
        wanted = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        assert (await served.post(ann, wanted, Mcp_Session_Id=session)).status_code == 401


@guarantee("tenant:isolation")
async def test_only_the_owner_of_a_pending_call_can_answer_it(crm):
    async with guarded({"acme": [crm], "zeta": [crm]}) as served:
        ann, bob, zoe = [await served.key(*who) for who in (("acme", "ann"), ("acme", "bob"), ("zeta", "zoe"))]
        wanted = {"name": "call_tool", "arguments": {"name": "crm__delete_customer", "arguments": {}}}
        waiting = (await served.told(ann, "tools/call", wanted, capabilities=ELICITS))["result"]
        assert waiting["resultType"] == "input_required"
        replies = {"question": {"action": "accept", "content": {"ok": True}}}
        retry = {**wanted, "requestState": waiting["requestState"], "inputResponses": replies}
        made_up = {**retry, "requestState": "toolscout-pending:made-up"}
        absent = (await served.told(zoe, "tools/call", made_up, capabilities=ELICITS))["result"]
        for thief in (zoe, bob):
            stolen = (await served.told(thief, "tools/call", retry, capabilities=ELICITS))["result"]
            assert stolen["content"] == absent["content"]
            assert stolen["isError"]
        mine = (await served.told(ann, "tools/call", retry, capabilities=ELICITS))["result"]
        assert mine["content"][0]["text"] == "they said True"


@guarantee("load:limits")
async def test_pending_calls_of_one_caller_leave_room_for_those_of_others(crm, monkeypatch):
    monkeypatch.setattr(pending_calls, "_MAX_OWN_PENDING", 2)
    async with guarded({"acme": [crm], "zeta": [crm]}) as served:
        ann, zoe = await served.key("acme", "ann"), await served.key("zeta", "zoe")
        wanted = {"name": "call_tool", "arguments": {"name": "crm__delete_customer", "arguments": {}}}

        async def call(key: str) -> Any:
            return (await served.told(key, "tools/call", wanted, capabilities=ELICITS))["result"]

        calls = [await call(ann) for _ in range(3)]
        assert [result.get("resultType") for result in calls] == ["input_required", "input_required", "complete"]
        assert "too many calls are pending" in calls[2]["content"][0]["text"]
        assert (await call(zoe))["resultType"] == "input_required"


@guarantee("tenant:isolation")
async def test_a_result_that_was_cut_is_read_only_by_whose_it_is(crm):
    async with guarded({"acme": [crm], "zeta": [crm]}) as served:
        ann, bob, zoe = [await served.key(*who) for who in (("acme", "ann"), ("acme", "bob"), ("zeta", "zoe"))]
        cut = await served.call(ann, "call_tool", {"name": "crm__export", "arguments": {}})
        uri = next(item["uri"] for item in cut["content"] if item["type"] == "resource_link")
        absent = await served.told(zoe, "resources/read", {"uri": "toolscout://results/made-up"})
        for thief in (zoe, bob):
            stolen = await served.told(thief, "resources/read", {"uri": uri})
            assert stolen["error"]["code"] == absent["error"]["code"]
            assert stolen["error"]["message"] == absent["error"]["message"]
        mine = await served.told(ann, "resources/read", {"uri": uri})
        assert "secret-of-acme" in mine["result"]["contents"][0]["text"]


@guarantee("tenant:isolation", "access:absent-equals-forbidden")
async def test_resources_and_prompts_are_for_callers_of_their_server(crm):
    async with guarded({"acme": [crm], "zeta": [server("hr", "list_staff")]}) as served:
        acme, zeta = await served.key("acme", "ann"), await served.key("zeta", "zoe")
        uri = "toolscout://servers/crm/crm://terms"
        assert [item["uri"] for item in (await served.told(acme, "resources/list"))["result"]["resources"]] == [uri]
        assert (await served.told(acme, "resources/read", {"uri": uri}))["result"]["contents"][0][
            "text"
        ] == "acme terms"
        assert (await served.told(acme, "prompts/get", {"name": "crm__greet"}))["result"]["messages"] == []
        assert (await served.told(zeta, "resources/list"))["result"]["resources"] == []
        assert (await served.told(zeta, "prompts/list"))["result"]["prompts"] == []
        for method, mine, absent in (
            ("resources/read", {"uri": uri}, {"uri": "toolscout://servers/abc/crm://terms"}),
            ("prompts/get", {"name": "crm__greet"}, {"name": "abc__greet"}),
        ):
            errors = [(await served.told(zeta, method, params))["error"] for params in (mine, absent)]
            assert errors[0]["message"] == errors[1]["message"]
            assert errors[0]["code"] == errors[1]["code"]


@guarantee("tenant:isolation")
async def test_a_change_is_notified_only_to_callers_who_can_see_it(crm):
    hr = server("hr", "list_staff")

    def connect(served, token):
        carrier = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=WAIT_S)
        return carrier, Client(streamable_http_client(served.url, http_client=carrier), mode=MODERN)

    async with guarded({"acme": [crm], "zeta": [hr]}, surface="all") as served:
        (one, ann), (two, zoe) = [connect(served, await served.key(*who)) for who in (("acme", "ann"), ("zeta", "zoe"))]
        async with (
            one,
            two,
            ann,
            zoe,
            ann.listen(tools_list_changed=True) as acme,
            zoe.listen(tools_list_changed=True) as zeta,
        ):
            crm.tool("new_one", description="Something new")
            await served.scout.index([crm], caller=Caller(tenant="acme"))
            assert isinstance(await asyncio.wait_for(anext(aiter(acme)), WAIT_S), ToolsListChanged)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(aiter(zeta)), 0.3)
            served.scout.access.apply_policy(parse_policy(""))
            assert isinstance(await asyncio.wait_for(anext(aiter(zeta)), WAIT_S), ToolsListChanged)
            assert (await zoe.list_tools()).tools == []


@pytest.mark.process
@guarantee("auth:no-passthrough", "tenant:isolation")
async def test_no_credential_is_sent_downstream_and_each_tenant_has_its_own_session(tmp_path):
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"
    with fake_http() as own, fake_http() as common:
        keys = {}
        async with Scout.open(store=store) as scout:
            for tenant in ("acme", "zeta"):
                rows = [{"server": name, "name": "echo"} for name in ("own", "common")]
                await scout.index_tools(rows, caller=Caller(tenant=tenant))
                keys[tenant] = (await scout.api_keys.create(tenant=tenant, user="u"))[0]
        entry = {"type": "http", "toolscout": {"private": True}}
        servers = {
            "own": {**entry, "url": f"{own.origin}/mcp"},
            "common": {"type": "http", "url": f"{common.origin}/mcp", "toolscout": {"private": True, "shared": True}},
        }
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        with serving(tmp_path, "--auth") as gateway:
            for _ in range(2):
                for token in keys.values():
                    headers = {"Authorization": f"Bearer {token}", "Cookie": "canary=1", "X-Canary": "canary"}
                    async with (
                        httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as carrier,
                        Client(streamable_http_client(gateway.url, http_client=carrier), mode=MODERN) as client,
                    ):
                        for name in ("own", "common"):
                            got = await client.call_tool("call_tool", {"name": f"{name}__echo", "arguments": {}})
                            assert not got.is_error, got
        for fake in (own, common):
            everything = repr(fake.seen)
            assert "tsk_" not in everything
            assert "canary" not in everything
            assert all("authorization" not in headers for _, _, headers, _ in fake.seen)
        sessions = [headers["mcp-session-id"] for headers in own.calls("echo")]
        assert sessions == [sessions[0], sessions[1]] * 2
        assert sessions[0] != sessions[1]
        assert len({headers["mcp-session-id"] for headers in common.calls("echo")}) == 1


@guarantee("access:fails-closed")
async def test_an_unverified_request_is_refused(crm):
    async with guarded({"local": [crm]}) as served, Client(served.gateway.server, mode="legacy") as client:
        # In memory there is no HTTP server that could have verified anybody.
        for requests in (
            client.list_tools(),
            client.list_resources(),
            client.call_tool("search_tools", {"query": "x"}),
        ):
            with pytest.raises(Exception, match="the request is not authenticated"):
                await requests
