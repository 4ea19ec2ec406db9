"""Calling tools over REST: once, with the policy, limits, audit and errors of MCP clients."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from guarded import Guarded
from scripted import Call, text
from toolscout.errors import OUTCOME_UNKNOWN, CallTimeoutError, ServerUnavailableError, SignInRequiredError
from toolscout.policy.policy_file import parse_policy

PROBLEM = "application/problem+json"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def call(served: Guarded, token: str, key: str, body: Any = None, **headers: str) -> Any:
    return await served.rest(token, "POST", f"/tools/{key}/call", body or {}, **headers)


async def test_the_result_is_that_of_the_server(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        answer = await call(served, ann, "crm__count_orders", {"arguments": {"count": "7"}})
        body = answer.json()
        assert answer.status_code == 200
        assert body["result"]["content"] == [{"type": "text", "text": "got {'count': 7}"}]
        assert (body["key"], body["is_error"], len(body["repairs"])) == ("crm__count_orders", False, 1)
        assert body["took_ms"] >= 0
        failed = (await call(served, ann, "crm__fail")).json()
        assert (failed["is_error"], failed["result"]["content"][0]["text"]) == (True, "it went wrong")
        assert (await call(served, ann, "crm__report%2Fyearly")).status_code == 200


async def test_what_is_refused_says_why_and_is_not_sent(open_rest):
    policy = parse_policy(
        '[[allow]]\nwho = ["anyone"]\n\n[[deny]]\nwho = ["anyone"]\nmay = "call"\ntools = ["*__fail"]\n'
    )
    async with open_rest(policy=policy) as served:
        ann = await served.key("acme", "ann")
        crm = next(server for server in served.servers if server.key == "crm")
        refused = {
            (422, "invalid_arguments"): await call(served, ann, "crm__count_orders", {"arguments": {"count": []}}),
            (409, "definition_changed"): await call(served, ann, "crm__list_customers", {"version": "abcdef123456"}),
            (403, "not_read_only"): await call(served, ann, "crm__delete_customer", {"read_only": True}),
            (403, "not_allowed"): await call(served, ann, "crm__fail"),
            (404, "tool_not_found"): await call(served, ann, "crm__delete_everything"),
        }
        for (status, code), answer in refused.items():
            problem = answer.json()
            assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
            assert problem["type"] == f"urn:toolscout:error:{code}"
            assert (problem["status"], problem["error"]["code"]) == (status, code)
            assert problem["detail"] == problem["error"]["message"]
            assert problem["error"]["hint"]
        assert crm.calls == []


async def test_rest_and_mcp_share_limits_and_say_when_to_come_back(open_rest):
    policy = parse_policy('[limits]\ncalls_per_minute = 2\n\n[[allow]]\nwho = ["anyone"]\n')
    async with open_rest(policy=policy) as served:
        ann = await served.key("acme", "ann")
        assert not (await served.call(ann, "call_tool", {"name": "crm__list_customers"})).get("isError")
        assert (await call(served, ann, "crm__list_customers")).status_code == 200
        over = await call(served, ann, "crm__list_customers")
        assert (over.status_code, over.json()["error"]["code"]) == (429, "limit_reached")
        assert 1 <= int(over.headers["retry-after"]) <= 60
        assert (await served.call(ann, "call_tool", {"name": "crm__list_customers"}))["isError"]


async def test_requests_over_rest_count_towards_the_limit_of_requests(open_rest):
    policy = parse_policy('[limits]\nrequests_per_minute = 3\n\n[[allow]]\nwho = ["anyone"]\n')
    async with open_rest(policy=policy) as served:
        ann = await served.key("acme", "ann")
        answers = [await served.rest(ann, "GET", "/tags") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert answers[-1].headers["content-type"] == PROBLEM
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert (await served.ask(ann, "tools/list")).status_code == 429


async def test_every_call_leaves_the_audit_line_of_an_mcp_call(open_rest, tmp_path):
    log = tmp_path / "audit.jsonl"
    async with open_rest(audit=str(log)) as served:
        ann = await served.key("acme", "ann")
        await served.call(ann, "call_tool", {"name": "crm__count_orders", "arguments": {"count": 3}})
        await call(served, ann, "crm__count_orders", {"arguments": {"count": 3}})
        await call(served, ann, "hr__list_staff")
    by_mcp, by_rest, hidden = (line for line in lines(log) if line["act"] == "call")
    assert {**by_mcp, "at": "", "ms": 0} == {**by_rest, "at": "", "ms": 0}
    assert (by_rest["user"], by_rest["arguments"]) == ("ann", {"count": "number"})
    assert (hidden["decision"], hidden["outcome"]) == ("refused", "tool_not_found")


async def test_a_repeated_request_with_the_same_key_is_not_sent_again(open_rest):
    async with open_rest() as served:
        ann, bob = await served.key("acme", "ann"), await served.key("acme", "bob")
        crm = next(server for server in served.servers if server.key == "crm")
        body = {"arguments": {"count": 1}}
        first = await call(served, ann, "crm__count_orders", body, Idempotency_Key="k1")
        again = await call(served, ann, "crm__count_orders", body, Idempotency_Key="k1")
        assert (again.status_code, again.content, len(crm.calls)) == (200, first.content, 1)
        other = await call(served, ann, "crm__count_orders", {"arguments": {"count": 2}}, Idempotency_Key="k1")
        assert (other.status_code, other.json()["error"]["code"], len(crm.calls)) == (409, "conflict", 1)
        assert (await call(served, bob, "crm__count_orders", body, Idempotency_Key="k1")).status_code == 200
        assert len(crm.calls) == 2
        long = await call(served, ann, "crm__count_orders", body, Idempotency_Key="k" * 256)
        empty = await call(served, ann, "crm__count_orders", body, Idempotency_Key="")
        assert (long.status_code, empty.status_code, len(crm.calls)) == (400, 400, 2)
        elsewhere = await call(served, ann, "crm__list_customers", {}, Idempotency_Key="k1")
        assert (elsewhere.status_code, len(crm.calls)) == (200, 3)


async def test_a_repeated_request_is_refused_while_the_first_is_under_way(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        crm = next(server for server in served.servers if server.key == "crm")
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(_call: Call) -> Any:
            begun.set()
            await go_on.wait()
            return text("at last")

        crm.answers["fail"] = slow
        first = asyncio.create_task(call(served, ann, "crm__fail", Idempotency_Key="k1"))
        await begun.wait()
        second = await call(served, ann, "crm__fail", Idempotency_Key="k1")
        assert (second.status_code, second.json()["error"]["code"]) == (409, "conflict")
        go_on.set()
        assert (await first).status_code == 200
        assert (await call(served, ann, "crm__fail", Idempotency_Key="k1")).json() == (await first).json()
        assert len(crm.calls) == 1


async def test_a_call_whose_outcome_is_unknown_is_not_repeated_and_one_over_a_limit_is(open_rest):
    policy = parse_policy('[limits]\ncalls_per_minute = 1\n\n[[allow]]\nwho = ["anyone"]\n')
    async with open_rest(policy=policy) as served:
        ann = await served.key("acme", "ann")
        crm = next(server for server in served.servers if server.key == "crm")

        async def late(_call: Call) -> Any:
            raise CallTimeoutError("too late")

        crm.answers["fail"] = late
        answers = [await call(served, ann, "crm__fail", Idempotency_Key="k1") for _ in range(2)]
        assert [answer.status_code for answer in answers] == [504, 504]
        assert len(crm.calls) == 1
        assert (await call(served, ann, "crm__list_customers", Idempotency_Key="k2")).status_code == 429
        served.scout.access.apply_policy(None)
        assert (await call(served, ann, "crm__list_customers", Idempotency_Key="k2")).status_code == 200


async def test_only_what_may_have_been_carried_out_is_answered_from_memory(open_rest):
    async with open_rest() as served:
        token = await served.operator()
        crm = next(server for server in served.servers if server.key == "crm")
        failing: dict[str, Exception] = {
            "refused": SignInRequiredError("sign in first"),
            "down": ServerUnavailableError("it is down; nothing was sent"),
            "gone": ServerUnavailableError("it went away", details={"outcome": OUTCOME_UNKNOWN}),
        }
        statuses = {}

        async def succeed(_call: Call) -> Any:
            return text("now it works")

        for name, error in failing.items():

            async def fail(_call: Call, error: Exception = error) -> Any:
                raise error

            crm.answers["fail"] = fail
            before = await call(served, token, "crm__fail", Idempotency_Key=name)
            crm.answers["fail"] = succeed
            after = await call(served, token, "crm__fail", Idempotency_Key=name)
            statuses[name] = (before.status_code, after.status_code)
        assert statuses == {"refused": (424, 200), "down": (503, 200), "gone": (503, 503)}
        key = ["crm__list_customers"]
        await served.rest(token, "POST", "/tools/switch", {"keys": key, "enabled": False})
        assert (await call(served, token, *key, Idempotency_Key="k")).status_code == 404
        await served.rest(token, "POST", "/tools/switch", {"keys": key, "enabled": True})
        assert (await call(served, token, *key, Idempotency_Key="k")).status_code == 200


async def test_feedback_is_recorded_without_the_text_of_the_request(open_rest, tmp_path):
    log = tmp_path / "audit.jsonl"
    async with open_rest(audit=str(log)) as served:
        ann = await served.key("acme", "ann")
        said = {"query": "who are our customers", "key": "crm__list_customers", "success": True}
        answer = await served.rest(ann, "POST", "/feedback", said)
        assert (answer.status_code, answer.json()) == (202, {"recorded": True})
        hidden = await served.rest(ann, "POST", "/feedback", {**said, "key": "hr__list_staff"})
        assert (hidden.status_code, hidden.json()["error"]["code"]) == (404, "tool_not_found")
    (line,) = (line for line in lines(log) if line["act"] == "feedback")
    assert (line["tenant"], line["user"], line["tool"]) == ("acme", "ann", "crm__list_customers")
    assert (line["outcome"], line["arguments"]) == ("helped", {"query": "text of 21"})
    assert "customers" not in json.dumps({**line, "tool": ""})


async def test_a_body_that_is_too_large_is_not_read_to_its_end(open_rest):
    async with open_rest(max_body_bytes=1_000) as served:
        ann = await served.key("acme", "ann")
        answer = await call(served, ann, "crm__list_customers", {"arguments": {"text": "x" * 2_000}})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "invalid_value")
        assert (await served.rest(ann, "POST", "/search", {"query": "x" * 2_000})).status_code == 413
        assert (await call(served, ann, "crm__list_customers")).status_code == 200


async def test_wrong_requests_get_problem_documents_that_name_the_place_and_not_the_value(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        wrong = [
            ("POST", "/search", {"query": "x", "limt": "sesame"}, 422, "body.limt"),
            ("POST", "/search", {"query": "x", "limit": "sesame"}, 422, "body.limit"),
            ("POST", "/search", None, 422, "application/json"),
            ("POST", "/tools/crm__fail/call", {"arguments": "sesame"}, 422, "body.arguments"),
            ("GET", "/tools?page=sesame", None, 422, "query.page"),
            ("GET", "/tools?sort=sesame", None, 422, "query.sort"),
            ("GET", "/tools?servr=sesame&page=1", None, 422, "query.servr: there is no such parameter"),
            ("GET", "/tools/crm__fail/related?top=sesame", None, 422, "this endpoint has limit"),
            ("GET", "/tools/crm__fail?detail=sesame", None, 422, "this endpoint has none"),
            ("POST", "/search?limit=sesame", {"query": "x"}, 422, "query.limit"),
            ("GET", "/nowhere", None, 404, "Not Found"),
            ("DELETE", "/search", None, 405, "Method Not Allowed"),
        ]
        for method, path, body, status, place in wrong:
            answer = await served.rest(ann, method, path, body)
            assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), path
            assert place in answer.json()["detail"]
            assert "sesame" not in answer.text
