"""Finding tools over REST: the answers are the library's, and lists have pages, filters, an order and an ETag."""

from __future__ import annotations

from typing import Any

import pytest

from guarded import Guarded, guarded
from rest_servers import crm
from scripted import Scripted
from toolscout import Caller


def without_times(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "metadata": {**answer["metadata"], "took_ms": 0}}


async def keys_of(served: Guarded, token: str, query: str) -> list[str]:
    response = await served.rest(token, "GET", f"/tools?detail=minimal&{query}")
    assert response.status_code == 200, response.text
    return [tool["key"].removeprefix("crm__") for tool in response.json()["tools"]]


async def test_a_search_answers_what_the_library_answers(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        body = {"query": "list customers", "limit": 3, "explain": True, "detail": "full"}
        response = await served.rest(ann, "POST", "/search", body)
        caller = served.scout.narrow(Caller(tenant="acme", user="ann"))
        answer = await served.scout.search_tools("list customers", top_k=3, explain=True, detail="full", caller=caller)
        assert response.headers["content-type"] == "application/json"
        assert without_times(response.json()) == without_times(answer.to_dict())
        assert response.json()["tools"][0]["key"] == "crm__list_customers"


async def test_several_queries_have_an_answer_each(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        queries = ["list customers", "delete a customer"]
        body = (await served.rest(ann, "POST", "/search", {"query": queries, "limit": 1})).json()
        assert [answer["tools"][0]["name"] for answer in body["results"]] == ["list_customers", "delete_customer"]


async def test_filters_of_a_search_are_those_of_the_library(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        unknown = await served.rest(ann, "POST", "/search", {"query": "customers", "servers": ["hr"]})
        assert unknown.status_code == 400
        assert unknown.json()["error"]["code"] == "unknown_server"
        keyword = await served.rest(ann, "POST", "/search", {"query": "delete_customer", "ranker": "keyword"})
        assert keyword.json()["metadata"]["ranker"] == "keyword"
        assert keyword.json()["tools"][0]["key"] == "crm__delete_customer"


async def test_tools_are_listed_by_page_filter_and_order(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        every = ["count_orders", "delete_customer", "fail", "list_customers", "report/yearly"]
        assert await keys_of(served, ann, "") == every
        assert await keys_of(served, ann, "sort=-name") == every[::-1]
        assert await keys_of(served, ann, "page=2&page_size=2") == every[2:4]
        assert await keys_of(served, ann, "server=crm&page=99") == []
        assert await keys_of(served, ann, "text=CUST+delet") == ["delete_customer"]
        assert await keys_of(served, ann, "text=crm+asked") == ["fail"]
        assert await keys_of(served, ann, "text=nothing") == []
        by_tokens = await served.rest(ann, "GET", "/tools?sort=-tokens")
        tokens = [len(str(tool["signature"])) for tool in by_tokens.json()["tools"]]
        assert tokens[0] == max(tokens)
        pages = (await served.rest(ann, "GET", "/tools?page_size=2")).json()["pagination"]
        assert pages == {
            "page": 1,
            "page_size": 2,
            "total_tools": 5,
            "total_pages": 3,
            "has_next": True,
            "has_prev": False,
        }


async def test_tools_are_listed_by_tag_and_category(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        tags = {tag["name"]: tag["count"] for tag in (await served.rest(ann, "GET", "/tags")).json()["tags"]}
        name, count = next(iter(tags.items()))
        assert len(await keys_of(served, ann, f"tag={name}")) == count
        found = await served.rest(ann, "GET", "/categories")
        assert sum(item["count"] for item in found.json()["categories"]) == 5
        category = found.json()["categories"][0]
        assert len(await keys_of(served, ann, f"category={category['name']}")) == category["count"]
        assert (await served.rest(ann, "GET", "/tools?tag=nowhere")).json()["error"]["code"] == "unknown_tag"


async def test_a_list_that_did_not_change_is_not_sent_again(open_rest):
    async with open_rest() as served:
        token = await served.operator()
        for path in ("/tools", "/tools/crm__fail", "/tags", "/categories", "/servers", "/keys", "/inventory"):
            first = await served.rest(token, "GET", path)
            again = await served.rest(token, "GET", path, If_None_Match=first.headers["etag"])
            assert (again.status_code, again.content) == (304, b""), path
            assert again.headers["etag"] == first.headers["etag"]
        tag = (await served.rest(token, "GET", "/inventory")).headers["etag"]
        await served.rest(token, "POST", "/tools/switch", {"keys": ["crm__fail"], "enabled": False})
        changed = await served.rest(token, "GET", "/inventory", If_None_Match=tag)
        assert changed.status_code == 200
        assert changed.headers["etag"] != tag


async def test_every_list_has_pages(open_rest):
    async with open_rest() as served:
        token = await served.operator()
        for name in ("tags", "categories", "servers", "keys", "changes"):
            body = (await served.rest(token, "GET", f"/{name}?page=1&page_size=1")).json()
            assert len(body[name]) <= 1
            assert body["pagination"]["page_size"] == 1
            past = (await served.rest(token, "GET", f"/{name}?page=1000")).json()
            assert (past[name], past["pagination"]["total"]) == ([], body["pagination"]["total"])


async def test_a_tool_is_opened_by_its_key_even_with_a_slash_in_it(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        (tool,) = (await served.rest(ann, "GET", "/tools/crm__report%2Fyearly")).json()["tools"]
        assert (tool["key"], tool["input_schema"]) == ("crm__report/yearly", {"type": "object"})
        assert (await served.rest(ann, "GET", "/tools/crm__report/yearly")).status_code == 404
        related = await served.rest(ann, "GET", "/tools/crm__report%2fyearly/related?limit=2")
        assert len(related.json()["tools"]) == 2
        assert all(tool["relationship"] for tool in related.json()["tools"])


@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_the_tools_of_a_chat_turn_come_as_definitions_of_the_chat_api(open_rest, form):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        body = {
            "query": "list the customers",
            "limit": 2,
            "format": form,
            "messages": [{"role": "user", "content": "x"}],
        }
        picked = (await served.rest(ann, "POST", "/discover", body)).json()
        name = next(name for name, key in picked["keys"].items() if key == "crm__list_customers")
        names = [tool["function"]["name"] if form == "openai" else tool["name"] for tool in picked["tools"]]
        assert name in names
        assert len(names) <= 2


async def test_an_operator_is_told_why_a_tool_is_not_found(open_rest):
    async with open_rest() as served:
        token = await served.operator()

        async def explained(key: str, **more: Any) -> dict[str, Any]:
            body = {"query": "delete a customer", "key": key, **more}
            found: dict[str, Any] = (await served.rest(token, "POST", "/explain", body)).json()
            return found

        first = await explained("crm__delete_customer")
        assert (first["rank"], first["see"]["allowed"], first["before"]) == (1, True, [])
        assert first["parts"]
        assert first["reason"].startswith("it is number 1 of the hits")
        by_words = await explained("crm__delete_customer", ranker="keyword")
        assert set(by_words["parts"]) != set(first["parts"])
        narrowed = await explained("crm__delete_customer", threshold=2.0)
        assert narrowed["rank"] is None
        assert narrowed["reason"].startswith("it is left out by the threshold of the request; otherwise it is number 1")
        searches = served.scout.metrics.answers.total
        absent = await explained("crm__fail", ranker="keyword")
        assert (absent["rank"], absent["reason"][:32]) == (None, "it is not among the first 200 hi")
        assert served.scout.metrics.answers.total == searches + 1, "the same search is not made twice"
        await served.rest(token, "POST", "/tools/switch", {"keys": ["crm__delete_customer"], "enabled": False})
        off = await explained("crm__delete_customer")
        assert (off["rank"], off["reason"]) == (None, off["see"]["because"])
        assert "disabled" in off["reason"]
        other = await explained("crm__delete_customer", tenant="zeta", user="zoe")
        assert not other["see"]["allowed"]
        missing = await explained("crm__delete_custmer")
        assert missing["suggestions"][0] == "crm__delete_customer"


async def test_an_operator_is_told_which_limits_of_a_search_left_a_tool_out():
    mail = Scripted("mail")
    mail.tool("send_mail", description="Send a mail")
    async with guarded({"acme": [crm(), mail]}, rest=True) as served:
        token = await served.operator()
        for limits, named in (
            ({"servers": ["mail"]}, "the filters"),
            ({"servers": ["mail"], "threshold": 0.1}, "the filters or the threshold"),
        ):
            body = {"query": "delete a customer", "key": "crm__delete_customer", **limits}
            reason = (await served.rest(token, "POST", "/explain", body)).json()["reason"]
            assert reason == f"it is left out by {named} of the request; otherwise it is number 1 of the hits"


async def test_an_operator_searches_as_another_user(open_rest):
    async with open_rest() as served:
        token = await served.operator()
        body = {"query": "list the staff", "tenant": "zeta", "user": "zoe"}
        assert (await served.rest(token, "POST", "/search", body)).json()["tools"][0]["key"] == "hr__list_staff"


async def test_users_of_the_registry_get_its_shape(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        asked = {"query": "list customers", "max_results": 2, "include_draft": True}
        found = (await served.rest(ann, "POST", "/api/search/semantic", asked)).json()
        assert (found["query"], found["search_mode"], found["total_tools"]) == ("list customers", "hybrid", 1)
        tool = found["tools"][0]
        assert (tool["server_path"], tool["tool_name"]) == ("/crm", "list_customers")
        assert tool["inputSchema"] == {"type": "object"}
        assert 0 < tool["relevance_score"] <= 1
        (server,) = found["servers"]
        assert (server["path"], server["num_tools"], server["is_enabled"]) == ("/crm", 5, True)
        assert server["matching_tools"][0]["tool_name"] == "list_customers"
        assert tool["endpoint_url"] == server["endpoint_url"] == served.url
        assert server["supported_transports"] == ["streamable-http"]
        assert (found["agents"], found["total_agents"], found["skills"]) == ([], 0, [])
        only = await served.rest(ann, "POST", "/api/search/semantic", {**asked, "entity_types": ["tool"]})
        assert (only.json()["servers"], only.json()["total_servers"]) == ([], 0)


async def test_users_of_the_registry_may_search_by_tags_alone(open_rest):
    async with open_rest() as served:
        ann = await served.key("acme", "ann")
        name = (await served.rest(ann, "GET", "/tags")).json()["tags"][0]["name"]
        found = await served.rest(ann, "POST", "/api/search/semantic", {"tags": [f"#{name}"]})
        assert found.json()["total_tools"] > 0
        within = await served.rest(ann, "POST", "/api/search/semantic", {"query": f"#{name}"})
        assert within.json()["tools"] == found.json()["tools"]
        both = await served.rest(ann, "POST", "/api/search/semantic", {"query": f"list customers #{name.upper()}"})
        assert both.json()["tools"][0]["tool_name"] == "list_customers"
        for words in ("list customers #nowhere", "list customers #42", f"list customers of #42 #{name}"):
            found = await served.rest(ann, "POST", "/api/search/semantic", {"query": words})
            assert found.json()["tools"][0]["tool_name"] == "list_customers", words
        unknown = await served.rest(ann, "POST", "/api/search/semantic", {"query": "x", "tags": ["nowhere"]})
        assert (unknown.status_code, unknown.json()["total_tools"]) == (200, 0)
        neither = await served.rest(ann, "POST", "/api/search/semantic", {})
        assert (neither.status_code, neither.json()["error"]["code"]) == (400, "empty_query")
