"""The ASGI middleware over real HTTP: every request gets its own derived tools, in both eras."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from raw_client import text_of
from tool_providers import Folder
from toolscout import RequestProvidersMiddleware, Settings
from web import client_as, serving


def notes_of(user: str) -> Folder:
    return Folder({f"notes_of_{user}": f"Read the notes of {user}", "whoami": "Say who I am"}, name=user)


def derive(connection):
    user = connection.headers.get("x-user")
    return notes_of(user) if user else None


async def derive_async(connection):
    return [notes_of(user) for user in connection.headers.get("x-user", "").split()]


SERVERS = {
    "lowlevel": (lambda: Server("s"), lambda server: server.streamable_http_app()),
    "mcpserver": (lambda: MCPServer("s"), lambda server: server.streamable_http_app()),
    "fastmcp": (lambda: FastMCP("s"), lambda server: server.http_app()),
}


@pytest.fixture(params=SERVERS)
def app(request, registry):
    """Return the app of a server with a registry, of each kind in turn."""
    make, serve = SERVERS[request.param]
    server = make()
    registry.attach(server)
    return serve(server)


async def found(client, query="notes"):
    got = await client.call_tool("tool_search", {"query": query, "ranker": "fuzzy", "max_results": 50})
    return sorted(hit["name"] for hit in got.structured_content["tools"] if "notes" in hit["name"])


async def executed(client, name):
    return await client.call_tool("execute_tool", {"name": name, "arguments": {"city": "Ulm"}})


async def test_each_request_has_the_tools_of_its_user(app, era):
    async with (
        serving(RequestProvidersMiddleware(app, derive)) as url,
        client_as(url, mode=era, **{"x-user": "ann"}) as (ann, _),
        client_as(url, mode=era, **{"x-user": "bob"}) as (bob, _),
        client_as(url, mode=era) as (nobody, _),
    ):
        answers = list(await asyncio.gather(found(ann), found(bob), found(nobody)))
        assert answers == [["notes_of_ann"], ["notes_of_bob"], []]
        for client, user in ((ann, "ann"), (bob, "bob")):
            assert (await executed(client, "whoami")).content[0].text == f"{user}: whoami in Ulm"
        assert (await executed(bob, "notes_of_ann")).is_error
        assert (await executed(nobody, "whoami")).is_error
        assert [tool.name for tool in (await ann.list_tools()).tools] == ["tool_search", "execute_tool"]


async def test_a_session_keeps_nothing_of_the_request_that_opened_it(app, era):
    async with (
        serving(RequestProvidersMiddleware(app, derive)) as url,
        client_as(url, mode=era, **{"x-user": "ann"}) as (client, http),
    ):
        assert await found(client) == ["notes_of_ann"]
        http.headers["x-user"] = "bob"
        assert await found(client) == ["notes_of_bob"]
        del http.headers["x-user"]
        assert await found(client) == []
        assert (await executed(client, "notes_of_ann")).is_error


@pytest.mark.fuzz
async def test_many_users_at_once_see_each_their_own(registry):
    server = MCPServer("s")
    registry.attach(server)

    async def user(url: str, number: int) -> None:
        async with client_as(url, mode="2026-07-28", **{"x-user": f"u{number}"}) as (client, _):
            for _ in range(3):
                assert await found(client) == [f"notes_of_u{number}"]
                assert (await executed(client, "whoami")).content[0].text == f"u{number}: whoami in Ulm"

    async with serving(RequestProvidersMiddleware(server.streamable_http_app(), derive)) as url:
        await asyncio.gather(*(user(url, number) for number in range(40)))


async def test_several_providers_may_be_derived_and_asynchronously(app):
    async with (
        serving(RequestProvidersMiddleware(app, derive_async)) as url,
        client_as(url, **{"x-user": "ann bob"}) as (both, _),
        client_as(url) as (nobody, _),
    ):
        assert await found(both) == ["notes_of_ann", "notes_of_bob"]
        assert (await executed(both, "whoami")).content[0].text == "ann: whoami in Ulm"
        assert await found(nobody) == []


@pytest.mark.parametrize("manner", ["raises", "hangs", "rubbish"])
async def test_a_derivation_that_fails_leaves_the_request_without_its_tools_and_is_reported(
    manner, registry, stuck, caplog
):
    def fails(_connection):
        if manner == "raises":
            raise RuntimeError("secret detail")
        return stuck.blocks() if manner == "hangs" else 7

    server = MCPServer("s")
    registry.attach(server)
    settings = Settings(provider_timeout_s=0.05)
    middleware = RequestProvidersMiddleware(server.streamable_http_app(), derive=fails, settings=settings)
    async with serving(middleware) as url, client_as(url, **{"x-user": "ann"}) as (client, _):
        assert await found(client) == []
        got = await client.call_tool("execute_tool", {"name": "sql_query", "arguments": {"query": "x"}})
        assert text_of(got) == "executed: x"
    assert {problem.provider for problem in registry.problems} == {"request"}
    assert "cannot be derived" in registry.problems[-1].what
    assert "secret" not in registry.problems[-1].what
    assert "the providers of a request cannot be derived" in caplog.text


async def test_what_is_neither_http_nor_a_websocket_passes_untouched():
    seen = []

    async def app(scope, _receive, _send):
        seen.append(scope["type"])

    def never(_connection):
        raise AssertionError

    async def receives_nothing() -> Any:
        raise AssertionError

    async def sends_nothing(_message: Any) -> None:
        raise AssertionError

    await RequestProvidersMiddleware(app, never)({"type": "lifespan"}, receives_nothing, sends_nothing)
    assert seen == ["lifespan"]
