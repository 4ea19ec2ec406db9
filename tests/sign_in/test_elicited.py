"""A client that can open links shows the person the sign-in, and the call goes on after it."""

import asyncio
from dataclasses import replace

import httpx2
import pytest
from mcp import Client
from mcp_types import ElicitResult

from downstreams import QUICK, WAIT_S, until
from guarantees import guarantee
from sign_ins import desk, protected
from toolscout.gateway.server import Gateway
from waiting import eventually

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
async def signed_out(authorization_server, protected_server, tmp_path):
    """A gateway on this machine whose server listed its tools before somebody signed out."""
    authorization_server.switch(approve="ann")
    config = protected(protected_server, authorization_server)
    async with desk(config, tmp_path) as here:
        await here.sign_in()

        async def listed():
            return (await here.scout.overview()).total == 3

        await eventually(listed, WAIT_S)
        (account,) = await here.accounts.stored.find_all()
        await here.accounts.sign_out(account, config)
        protected_server.reject_known_tokens()
        with pytest.raises(Exception, match="sign in"):
            await here.call()
        await until(lambda: here.scout.servers.statuses()[0].state == "needs_login")
        gateway = Gateway(here.scout, settings=replace(QUICK, embedder="none"))
        async with gateway.running():
            yield gateway


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_link_goes_to_the_person_and_the_call_goes_on(signed_out, mode):
    shown, browser = [], []

    async def open_link(_context, params):
        shown.append(params.message)
        async with httpx2.AsyncClient(trust_env=False) as http:
            callback = (await http.get(params.url)).headers["location"]
        browser.append(callback)
        return ElicitResult(action="accept")

    async with Client(signed_out.server, elicitation_callback=open_link, mode=mode) as client:

        async def come_back():
            await until(lambda: bool(browser))
            async with httpx2.AsyncClient(trust_env=False) as http:
                return (await http.get(browser[0])).text

        page = asyncio.create_task(come_back())
        result = await client.call_tool("call_tool", {"name": "notes__whoami", "arguments": {}})
        assert result.structured_content["sub"] == "ann", result.content
        assert "You are signed in to notes" in await page
    assert shown == ["notes needs you to sign in"]


async def test_a_person_who_declines_gets_the_error_with_the_command(signed_out, authorization_server):
    async def decline(_context, _params):
        return ElicitResult(action="decline")

    async with Client(signed_out.server, elicitation_callback=decline) as client:
        result = await client.call_tool("call_tool", {"name": "notes__whoami", "arguments": {}})
    assert result.is_error
    assert "toolscout login notes" in str(result.content)
