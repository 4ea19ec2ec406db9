"""Over REST a caller sees and calls what MCP lets them see and call, and nothing tells absent from forbidden."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx2
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from guarantees import guarantee
from guarded import Guarded, guarded
from issuer import running_issuer
from rest_servers import crm
from scripted import Scripted
from toolscout.api.writes import Writes
from toolscout.errors import StoreUnreachableError
from toolscout.policy.policy_file import parse_policy

POLICY = """
[[allow]]
who = ["user:ann"]
tools = ["crm__list_customers", "crm__count_orders"]

[[allow]]
who = ["user:ann"]
may = "see"
tools = ["crm__delete_customer"]

[[allow]]
who = ["user:olga"]
"""

OPERATING: list[tuple[str, str, Any]] = [
    ("POST", "/explain", {"query": "x", "key": "crm__fail"}),
    ("GET", "/inventory", None),
    ("POST", "/tools/switch", {"keys": ["crm__fail"], "enabled": False}),
    ("POST", "/servers", {"mcpServers": {"new": {"command": "true"}}}),
    ("PUT", "/servers/crm", {"entry": {"command": "true"}}),
    ("DELETE", "/servers/crm", None),
    ("POST", "/servers/crm/enable", None),
    ("POST", "/servers/crm/disable", None),
    ("POST", "/servers/crm/restart", None),
    ("POST", "/servers/crm/refresh", None),
    ("GET", "/servers/crm/log", None),
    ("GET", "/changes", None),
    ("POST", "/changes", {"keys": ["crm__fail"], "verdict": "kept_out"}),
    ("GET", "/keys", None),
    ("POST", "/keys", {"tenant": "acme"}),
    ("POST", "/keys/abc/revoke", None),
    ("POST", "/keys/abc/rotate", None),
    ("GET", "/policy/check?key=crm__fail", None),
    ("GET", "/activity", None),
    ("POST", "/eval", {"rows": [{"query": "x", "gold": []}]}),
]


async def keys_over_mcp(served: Guarded, token: str) -> list[str]:
    result = await served.call(token, "list_tools", {"page_size": 100})
    return [tool["key"] for tool in result["structuredContent"]["tools"]]


async def keys_over_rest(served: Guarded, token: str) -> list[str]:
    return [tool["key"] for tool in (await served.rest(token, "GET", "/tools")).json()["tools"]]


@guarantee("access:one-predicate")
async def test_what_a_caller_sees_over_rest_is_what_they_see_over_mcp(open_rest):
    async with open_rest(policy=parse_policy(POLICY), surface="browse") as served:
        everyone = await served.key("acme", "ann"), await served.key("acme", "bob"), await served.operator()
        expected: list[Any] = []
        for token in everyone:
            expected.append(await keys_over_mcp(served, token))
            assert await keys_over_rest(served, token) == expected[-1]
            found = await served.rest(token, "POST", "/search", {"query": "customers", "limit": 50})
            assert {tool["key"] for tool in found.json()["tools"]} <= set(expected[-1])
            stats = (await served.rest(token, "GET", "/stats")).json()
            categories = (await served.rest(token, "GET", "/categories")).json()["categories"]
            assert stats["tools"] == len(expected[-1]) == sum(item["count"] for item in categories)
        assert [len(keys) for keys in expected] == [3, 0, 5]


@guarantee("access:one-predicate")
async def test_who_may_call_over_rest_is_who_may_call_over_mcp(open_rest):
    async with open_rest(policy=parse_policy(POLICY)) as served:
        ann, bob = await served.key("acme", "ann"), await served.key("acme", "bob")
        for token in (ann, bob):
            for name in ("list_customers", "delete_customer", "fail"):
                mcp = await served.call(token, "call_tool", {"name": f"crm__{name}"})
                rest = await served.rest(token, "POST", f"/tools/crm__{name}/call", {})
                code = mcp["structuredContent"]["error"]["code"] if mcp.get("isError") else None
                assert (rest.json().get("error") or {}).get("code") == code, (token, name)
        crm = next(server for server in served.servers if server.key == "crm")
        assert [item.name for item in crm.calls] == ["list_customers"] * 2


ASKED: list[tuple[str, str, Any]] = [
    *(
        (method, path.format(key), json.loads(json.dumps(body).replace("KEY", key)))
        for key in ("crm__fail", "hr__list_staff")
        for method, path, body in (
            ("GET", "/tools/{}", None),
            ("GET", "/tools/{}/related", None),
            ("POST", "/tools/{}/call", {"arguments": {}}),
            ("POST", "/feedback", {"query": "x", "key": "KEY", "success": True}),
        )
    ),
    ("GET", "/tools", None),
    ("GET", "/tools?server=hr", None),
    ("GET", "/tags", None),
    ("GET", "/categories", None),
    ("GET", "/stats", None),
    ("GET", "/servers", None),
    ("GET", "/servers/hr", None),
    ("POST", "/search", {"query": "fail at whatever is asked", "limit": 50}),
    ("POST", "/search", {"query": "list staff", "servers": ["hr"]}),
    ("POST", "/api/search/semantic", {"query": "fail or list staff"}),
    ("POST", "/discover", {"query": "fail or list staff"}),
]


@guarantee("access:absent-equals-forbidden", "tenant:isolation")
async def test_what_is_forbidden_answers_as_if_it_did_not_exist(open_rest):
    policy = parse_policy('[[allow]]\nwho = ["user:ann"]\ntools = ["crm__list_customers"]\n')
    bare = Scripted("crm")
    bare.tool(**crm().definitions["list_customers"])
    worlds = []
    for opened in (open_rest(policy=policy), guarded({"acme": [bare]}, rest=True, policy=policy)):
        async with opened as served:
            ann = await served.key("acme", "ann")
            answers = [await served.rest(ann, *asked) for asked in ASKED]
            texts = [re.sub(r'"took_ms":[0-9.]+', "", answer.text.replace(served.url, "URL")) for answer in answers]
            worlds.append([(answer.status_code, text) for answer, text in zip(answers, texts, strict=True)])
    for asked, full, empty in zip(ASKED, *worlds, strict=True):
        assert full == empty, asked


@guarantee("tenant:isolation")
async def test_a_caller_is_told_of_a_server_only_what_concerns_them(open_rest):
    policy = parse_policy('[[allow]]\nwho = ["user:ann"]\ntools = ["crm__list_customers"]\n')
    async with open_rest(policy=policy) as served:
        ann, bob = await served.key("acme", "ann"), await served.key("acme", "bob")
        (server,) = (await served.rest(ann, "GET", "/servers")).json()["servers"]
        told = {"key": "crm", "title": "crm", "state": "ready", "hint": "", "tools": 1, "users_sign_in": False}
        assert server == told
        assert (await served.rest(bob, "GET", "/servers")).json()["servers"] == []
        assert (await served.rest(bob, "GET", "/servers/crm")).status_code == 404
        found = await served.rest(ann, "POST", "/api/search/semantic", {"query": "list customers"})
        assert found.json()["servers"][0]["num_tools"] == 1


@guarantee("access:one-predicate")
async def test_routes_of_operators_are_refused_to_everybody_else(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann", scopes=["toolscout:operators", "operator"])
        for method, path, body in OPERATING:
            answer = await served.rest(ann, method, path, body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), path
        for body in ({"tenant": "zeta"}, {"user": "bob"}, {"groups": ["admins"]}):
            answer = await served.rest(ann, "POST", "/search", {"query": "staff", **body})
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
        assert await keys_over_rest(served, ann) == sorted(f"crm__{name}" for name in served.servers[0].definitions)


async def test_every_route_of_the_description_is_open_to_all_or_among_the_refused(open_rest):
    everybodys = set(
        "search discover list_tools list_categories list_tags get_related_tools get_tool call_tool give_feedback "
        "list_servers get_server get_stats search_semantic follow_events get_caller".split()
    )
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        paths = (await served.rest(ann, "GET", "/openapi.json")).json()["paths"]
    names = {item["operationId"] for operations in paths.values() for item in operations.values()}
    assert len(names - everybodys) == len(OPERATING)


@guarantee("access:one-predicate")
async def test_the_scope_of_operators_is_read_from_keys_and_tokens_alike(open_rest):
    with running_issuer() as issuer:
        async with open_rest(issuer=issuer) as served:
            plain = issuer.token(sub="ann", tenant="acme")
            operator = issuer.token(sub="olga", tenant="acme", scope="toolscout:operator")
            assert (await served.rest(plain, "GET", "/keys")).status_code == 403
            assert (await served.rest(operator, "GET", "/keys")).status_code == 200
    async with open_rest(operator_scope="admin") as served:
        assert (await served.rest(await served.operator(), "GET", "/keys")).status_code == 403
        assert (await served.rest(await served.key("acme", "a", scopes=["admin"]), "GET", "/keys")).status_code == 200
    async with open_rest(operator_scope="") as served:
        nobody = await served.key("acme", "ann", scopes=["toolscout:operator"])
        assert (await served.rest(nobody, "GET", "/keys")).status_code == 403


@pytest.mark.parametrize("token", [None, "tsk_wrong", "tsk_0123456789_" + "x" * 40])
async def test_without_a_valid_key_nothing_is_served(open_rest, token):
    async with open_rest() as served:
        for method, path in (("GET", "/tools"), ("GET", "/openapi.json"), ("GET", "/nowhere"), ("POST", "/search")):
            answer = await served.rest(token, method, path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized"), path
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_many_wrong_keys_are_answered_with_429(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        assert (await served.rest(ann, "GET", "/tools")).status_code == 200
        answers = await asyncio.gather(*(served.rest("tsk_wrong", "GET", "/tools") for _ in range(400)))
        assert {answer.status_code for answer in answers} == {401, 429}
        assert (answers[-1].status_code, answers[-1].json()["error"]["code"]) == (429, "limit_reached")
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert answers[-1].headers["content-type"] == "application/problem+json"
        assert (await served.rest(ann, "GET", "/tools")).status_code == 200


async def test_a_web_page_of_another_origin_is_refused(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        for path in ("/tools", "/keys"):
            answer = await served.rest(ann, "GET", path, Origin="https://evil.example")
            assert answer.status_code == 403
        page = await served.rest(ann, "POST", "/search", None, Content_Type="text/plain")
        assert page.status_code == 422


async def test_a_stored_answer_belongs_to_its_caller(open_rest):
    async with open_rest() as served:
        olga, ann = await served.operator(), await served.key("acme", "ann")
        made = await served.rest(olga, "POST", "/keys", {"tenant": "acme"}, Idempotency_Key="k1")
        assert made.status_code == 201
        stolen = await served.rest(ann, "POST", "/keys", {"tenant": "acme"}, Idempotency_Key="k1")
        assert stolen.status_code == 403
        assert made.json()["key"] not in stolen.text


class LosesAnswers:
    """A store whose connection ends after a record was stored, before that was confirmed."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def put_records(self, *records: Any, **how: Any) -> None:
        await self.inner.put_records(*records, **how)
        raise StoreUnreachableError("the connection was lost", hint="wait")


async def test_a_write_whose_confirmation_was_lost_is_not_done_again(open_rest):
    async with open_rest() as served:
        olga = await served.operator()
        whole = served.store.inner
        served.store.inner = LosesAnswers(whole)
        lost = await served.rest(olga, "POST", "/keys", {"tenant": "acme"}, Idempotency_Key="k1")
        assert (lost.status_code, lost.json()["error"]["code"]) == (503, "store_unavailable")
        served.store.inner = whole
        again = await served.rest(olga, "POST", "/keys", {"tenant": "acme"}, Idempotency_Key="k1")
        assert (again.status_code, again.json()) == (503, lost.json())
        assert len(await served.scout.api_keys.list_all()) == 2, "the operator's and one other"


@pytest.mark.parametrize("body", ["busy", "[]", '{"error": "busy"}', '{"error": {"code": []}}', ""])
async def test_a_write_that_was_answered_with_no_error_of_ours_may_be_done(body):
    asked = 0

    async def busy(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal asked
        asked += 1
        await PlainTextResponse(body, status_code=503)(scope, receive, send)

    transport = httpx2.ASGITransport(app=Writes(busy, 1_000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as http:
        for _ in range(2):
            answer = await http.post("/keys", headers={"Idempotency-Key": "k1"})
            assert (answer.status_code, answer.text) == (503, body)
    assert asked == 1


async def test_servers_of_an_empty_gateway_are_an_empty_list():
    async with guarded({"acme": [Scripted("bare")]}, rest=True) as served:
        assert (await served.rest(await served.key("acme", "ann"), "GET", "/servers")).json()["servers"] == []
