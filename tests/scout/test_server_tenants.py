"""Servers that belong to tenants: indexed, followed and removed for each of them, and seen by nobody else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from downstreams import QUICK, WAIT_S, fake
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Caller, Scout, ServerUnavailableError, ToolNotFoundError
from toolscout.config import Config, ServerConfig
from toolscout.testing import FakeServer
from waiting import eventually

pytestmark = guarantee("tenant:isolation")

ACME, BETA, LOCAL = Caller(tenant="acme"), Caller(tenant="beta"), Caller()
ROWS = [{"name": "find_customer", "description": "Find a customer by name."}]
MORE = [*ROWS, {"name": "add_customer", "description": "Add a customer."}]


def scout_over(*servers: FakeServer, embedder: HashEmbedder | None = None) -> Scout:
    return Scout.open(store="memory:", embedder=embedder or HashEmbedder(), settings=QUICK, servers=servers)


async def names(scout: Scout, caller: Caller) -> list[str]:
    return [match.tool.name for match in await scout.list_tools(caller=scout.narrow(caller))]


async def sees(scout: Scout, caller: Caller, expected: list[str]) -> None:
    async def same() -> bool:
        return await names(scout, caller) == expected

    await eventually(same, WAIT_S)


async def test_a_server_without_tenants_belongs_to_the_local_tenant() -> None:
    async with scout_over(FakeServer("crm", ROWS)) as scout:
        assert await names(scout, LOCAL) == ["find_customer"]
        assert await names(scout, ACME) == []


async def test_a_server_is_indexed_for_each_of_its_tenants_and_nobody_else_sees_it() -> None:
    server = FakeServer("crm", ROWS, tenants=("acme", "beta"))
    embedder = HashEmbedder()
    async with scout_over(server, embedder=embedder) as scout:
        assert [await names(scout, caller) for caller in (ACME, BETA)] == [["find_customer"]] * 2
        assert [await names(scout, caller) for caller in (LOCAL, Caller(tenant="gamma"))] == [[], []]
    assert (server.times_listed, len(embedder.documents)) == (1, 1)


async def test_a_call_reaches_the_server_for_its_tenants_only() -> None:
    server = FakeServer("crm", ROWS, tenants=("acme",), answer=lambda call: f"hello {call.caller.tenant}")
    async with scout_over(server) as scout:
        assert (await scout.call_tool("crm__find_customer", caller=scout.narrow(ACME))).text == "hello acme"
        for caller in (LOCAL, BETA):
            with pytest.raises(ToolNotFoundError):
                await scout.call_tool("crm__find_customer", caller=scout.narrow(caller))
    assert [call.caller.tenant for call in server.calls] == ["acme"]


async def test_tools_stored_for_another_tenant_do_not_reach_a_server_that_is_not_theirs() -> None:
    server = FakeServer("crm", ROWS, tenants=("acme",))
    async with scout_over(server) as scout:
        await scout.index_tools([{**row, "server": "crm"} for row in ROWS], caller=BETA)
        assert await names(scout, BETA) == []
        with pytest.raises(ServerUnavailableError):
            await scout.call_tool("crm__find_customer", caller=BETA)
    assert server.calls == []


async def test_a_change_of_the_server_is_followed_for_each_of_its_tenants() -> None:
    server = FakeServer("crm", ROWS, tenants=("acme", "beta"))
    async with scout_over(server) as scout:
        server.set_rows(MORE)
        for caller in (ACME, BETA):
            await sees(scout, caller, ["add_customer", "find_customer"])
        server.set_rows(ROWS)
        for caller in (ACME, BETA):
            await sees(scout, caller, ["find_customer"])


async def test_a_decision_of_one_tenant_is_not_the_others() -> None:
    async with scout_over(FakeServer("crm", ROWS, tenants=("acme", "beta"))) as scout:
        await scout.decisions.switch(ACME.scope, ["crm__find_customer"], enabled=False)
        assert (await names(scout, ACME), await names(scout, BETA)) == ([], ["find_customer"])


async def test_a_server_that_is_down_stays_in_the_catalogue_and_comes_back() -> None:
    server = FakeServer("crm", ROWS, tenants=("acme",))
    async with scout_over(server) as scout:
        server.go_down("for maintenance")
        assert scout.servers.statuses()[0].state == "failed"
        with pytest.raises(ServerUnavailableError, match="for maintenance"):
            await scout.call_tool("crm__find_customer", caller=scout.narrow(ACME))
        assert await names(scout, ACME) == ["find_customer"]
        server.come_back()
        assert (await scout.call_tool("crm__find_customer", caller=scout.narrow(ACME))).text == "done"


async def test_a_server_of_all_tenants_is_indexed_for_those_that_the_store_knows(tmp_path: Path) -> None:
    settings = replace(QUICK, store=f"sqlite:///{tmp_path / 'catalogue.db'}")
    async with Scout.open(settings=settings, embedder=HashEmbedder()) as before:
        await before.index_tools([{"name": "own", "server": "own"}], caller=ACME)
        await before.api_keys.create(tenant="beta")
    server = FakeServer("clock", [{"name": "now", "description": "Tell the time."}], tenants="all")
    async with Scout.open(settings=settings, embedder=HashEmbedder(), servers=[server]) as scout:
        for caller in (LOCAL, ACME, BETA):
            assert await names(scout, caller) == ["now"]
        assert server.times_listed == 1


async def test_a_tenant_that_appears_later_gets_the_servers_of_all_tenants() -> None:
    server = FakeServer("clock", [{"name": "now", "description": "Tell the time."}], tenants="all")
    async with scout_over(server) as scout:
        await sees(scout, Caller(tenant="new"), ["now"])


@pytest.mark.process
async def test_an_edit_of_the_tenants_adds_and_removes_the_server_without_connecting_it_anew(tmp_path: Path) -> None:
    server = fake(tmp_path, "fake", "--tools", "2")

    def config(*tenants: str) -> Config:
        return Config(servers=(replace(server.config, tenants=tenants),))

    tools = ["tool0", "tool1"]
    async with Scout.open(config("acme"), store="memory:", embedder=HashEmbedder(), settings=QUICK) as scout:
        assert [await names(scout, caller) for caller in (LOCAL, ACME, BETA)] == [[], tools, []]
        await (await scout.connect(config("acme", "beta"))).settled()
        assert [await names(scout, caller) for caller in (LOCAL, ACME, BETA)] == [[], tools, tools]
        await (await scout.connect(config("beta", "local"))).settled()
        assert [await names(scout, caller) for caller in (LOCAL, ACME, BETA)] == [tools, [], tools]
        assert await scout.list_tools(caller=ACME) == await scout.list_tools(caller=Caller(tenant="nobody"))
        await (await scout.connect(Config())).settled()
        for caller in (LOCAL, ACME, BETA):
            assert len(await scout.list_tools(caller=caller)) == 0
    assert len(server.starts) == 1


@pytest.mark.process
async def test_two_servers_of_one_slug_in_one_tenant_are_kept_apart(tmp_path: Path) -> None:
    settings = replace(QUICK, store=f"sqlite:///{tmp_path / 'catalogue.db'}")
    async with Scout.open(settings=settings, embedder=HashEmbedder()) as before:
        await before.index_tools([{"name": "own", "server": "my fake"}], caller=ACME)
    server: ServerConfig = fake(tmp_path, "my-fake", "--tools", "1", tenants=("acme",)).config
    async with Scout.open(Config(servers=(server,)), settings=settings, embedder=HashEmbedder()) as scout:
        keys = [match.tool.key for match in await scout.list_tools(caller=ACME)]
        assert "my-fake__own" in keys
        assert [key for key in keys if key.endswith("__tool0")] != ["my-fake__tool0"]
        assert await names(scout, ACME) == ["tool0"]
