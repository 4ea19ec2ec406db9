"""The web app with request-scoped tools, over HTTP, used by a scripted model for two users and for none."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from scripted_model import Call, converse, first_hit
from web import client_as, serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "web_request_tools.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("web_request_tools", EXAMPLE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    module.registry.close()
    module.database.close()


def bearer(user):
    return {"authorization": f"Bearer token-of-{user}"}


async def test_every_user_has_their_own_tools_beside_everybodys(example, era):
    def script(query):
        return [
            lambda _: Call("tool_search", {"query": query}),
            lambda found: Call("execute_tool", {"name": first_hit(found)}),
            lambda called: called.content[0].text,
        ]

    async with (
        serving(example.app) as url,
        client_as(url, mode=era, **bearer("ann")) as (ann, http),
        client_as(url, mode=era, **bearer("bob")) as (bob, _),
        client_as(url, mode=era, **bearer("eve")) as (eve, _),
    ):
        assert (await http.get(f"{url}/health")).json() == {"status": "ok"}
        seen, text = await converse(ann, script("which invoices are not paid"))
        assert seen == ["tool_search", "execute_tool"]
        assert "lamp" in text
        assert "chair" in text
        assert "460" in (await converse(bob, script("what is the sum of the sales")))[1]
        for client in (ann, bob, eve):
            assert (await converse(client, script("how many invoices are there, count_invoices")))[1] == "3"
        for client in (bob, eve):
            assert (await client.call_tool("execute_tool", {"name": "unpaid_invoices"})).is_error


@pytest.fixture(params=["2026-07-28", "legacy"])
def era(request):
    return request.param
