"""A user of a gateway learns where to sign in: from a search, and by a link that their client opens during a call."""

import time
from types import SimpleNamespace

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from downstreams import WAIT_S
from guarantees import guarantee
from sign_ins import protected
from teams import ANN, BOB, Visitor, team
from waiting import eventually

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server, per_user=True)


class Person:
    """A person whose client opens the links that it is asked to open, in their browser."""

    def __init__(self, here, key, visitor):
        self.here, self.key, self.visitor = here, key, visitor
        self.opened = []

    async def open(self, _context, params):
        self.opened.append(params.url)
        await self.visitor.sign_in(self.key)
        return ElicitResult(action="accept")

    async def call(self, tool, mode="auto"):
        headers = {"Authorization": f"Bearer {self.key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
            Client(
                streamable_http_client(f"{self.here.url}/mcp", http_client=http),
                elicitation_callback=self.open,
                mode=mode,
            ) as client,
        ):
            return await client.call_tool("call_tool", {"name": f"notes__{tool}", "arguments": {}})


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_first_call_of_a_user_leads_to_their_sign_in_and_goes_on(config, tmp_path, mode):
    async with team(config, tmp_path) as here, Visitor(here) as visitor:
        ann = Person(here, await here.key(ANN), visitor)
        result = await ann.call("whoami", mode)
        assert result.structured_content["sub"] == "ann", result.content
        assert ann.opened == [f"{here.url}/connect/notes"]
        assert (await ann.call("whoami", mode)).structured_content["sub"] == "ann"
        assert len(ann.opened) == 1


async def test_a_sign_in_at_a_replica_whose_clock_is_behind_is_noticed(config, tmp_path, monkeypatch):
    async with team(config, tmp_path) as here, Visitor(here) as visitor:
        ann = Person(here, await here.key(ANN), visitor)
        now = time.time()
        monkeypatch.setattr("toolscout.downstream.sign_in.flow.time", SimpleNamespace(time=lambda: now - 300))
        assert (await ann.call("whoami")).structured_content["sub"] == "ann"


async def test_a_call_that_needs_more_leads_to_a_second_consent_and_goes_on(config, tmp_path, authorization_server):
    async with team(config, tmp_path) as here, Visitor(here) as visitor:
        ann = Person(here, await here.key(ANN), visitor)
        assert not (await ann.call("whoami")).is_error
        result = await ann.call("add_note")
        assert result.structured_content == {"notes": 1}, result.content
        assert len(ann.opened) == 2
    assert [grant["scope"] for grant in authorization_server.grants()] == ["tools:read", "tools:read tools:write"]


async def test_a_search_names_the_page_until_the_user_has_signed_in(config, tmp_path):
    async with team(config, tmp_path) as here, Visitor(here) as visitor:
        key = await here.key(ANN)
        page = f"open {here.url}/connect/notes and sign in"

        async def search(who, **filters):
            answer = await here.call(who, "search_tools", query="count the notes", **filters)
            return answer.structured_content

        assert page in str((await search(key))["suggestions"])
        assert page in str((await search(key, servers=["notes"]))["suggestions"])
        await visitor.sign_in(key)
        await here.until_listed(ANN)
        assert page not in str(await search(key))
        (account,) = await here.accounts.stored.find_all()
        await here.accounts.sign_out(account, config)

        async def marked():
            tools = (await search(key))["tools"]
            return [(tool.get("available"), tool.get("hint")) for tool in tools] == [(False, page)] * len(tools)

        await eventually(marked, WAIT_S)
        assert page in str((await search(await here.key(BOB)))["suggestions"])


async def test_a_user_who_may_not_use_a_server_does_not_learn_of_it(config, tmp_path):
    policy = '[[allow]]\nwho = ["anyone"]\n[[deny]]\nwho = ["user:bob"]\nservers = ["notes"]'
    async with team(config, tmp_path, policy=policy) as here, Visitor(here) as visitor:
        bob = Person(here, await here.key(BOB), visitor)
        refused = await bob.call("whoami")
        nothing = await bob.call("nothing")
        assert refused.is_error
        assert bob.opened == []
        told = [str(result.content).replace("nothing", "whoami") for result in (refused, nothing)]
        assert told[0] == told[1]
        found = await here.call(bob.key, "search_tools", query="count the notes")
        assert "connect" not in str(found.structured_content)
