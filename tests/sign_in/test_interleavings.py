"""Users sign in, call and sign out in random order, through a running gateway. No token and no session serves two."""

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from random import Random

import pytest

from guarantees import guarantee
from sign_ins import protected
from teams import Visitor, found, team
from toolscout.models import Caller
from web import client_as

pytestmark = [pytest.mark.process, guarantee("signin:bound")]

USERS = {
    "ann": Caller(tenant="acme", user="ann"),
    "bob": Caller(tenant="acme", user="bob"),
    "zoe": Caller(tenant="zeta", user="ann"),
}
"""By their names at the issuer. Two are called alike on the gateway, in two tenants."""


class Person:
    """A user with a browser and an agent. The agent is connected all the time."""

    def __init__(self, name, key, here, browser, agent):
        self.name, self.key, self.here, self.browser, self.agent = name, key, here, browser, agent
        self.signed_in = False

    async def sign_in(self):
        await self.browser.sign_in(self.key)
        await self.here.until_listed(USERS[self.name])
        self.signed_in = True

    async def sign_out(self):
        text = (await self.browser.begin(self.key)).text
        fields = {name: found(rf'name="{name}" value="([^"]+)"', text) for name in ("check", "ticket")}
        assert "deleted and revoked" in (await self.browser.post("/connect/notes", data=fields)).text
        self.signed_in = False

    async def call(self, number):
        """Call as this user, and return as whom the server saw the call, or None if it was not sent."""
        arguments = {"caller": self.name, "number": number}
        result = await self.agent.call_tool("call_tool", {"name": "notes__whoami", "arguments": arguments})
        return (result.structured_content or {}).get("sub")


@asynccontextmanager
async def people(here, mode):
    async with AsyncExitStack() as stack:
        persons = {}
        for name, caller in USERS.items():
            key = await here.key(caller)
            browser = await stack.enter_async_context(Visitor(here))
            connected = client_as(here.url, mode=mode, Authorization=f"Bearer {key}")
            agent, _ = await stack.enter_async_context(connected)
            persons[name] = Person(name, key, here, browser, agent)
        yield persons


@pytest.mark.parametrize("era", ["modern", "handshake"])
@pytest.mark.parametrize("seed", range(3))
async def test_a_call_carries_the_token_of_its_own_caller_whatever_others_do_meanwhile(
    tmp_path, authorization_server, protected_server, era, seed
):
    random, numbers = Random(seed), count()
    authorization_server.register_user("zoe")
    protected_server.switch(handshake=era == "handshake")
    config = protected(protected_server, authorization_server, per_user=True, concurrency=100)
    mode = "auto" if era == "modern" else "legacy"

    async def calls_of(names):
        """Call as many users at once. Those who stay signed in are always served."""
        certain = {name for name, person in persons.items() if person.signed_in}
        seen = await asyncio.gather(*(persons[name].call(next(numbers)) for name in names))
        for name, sub in zip(names, seen, strict=True):
            assert sub == name or (sub is None and name not in certain), (name, sub)

    async with team(config, tmp_path) as here, people(here, mode) as persons:
        for _ in range(25):
            person = persons[random.choice(list(USERS))]
            others = [name for name in USERS if name != person.name]
            busy = calls_of([random.choice(others) for _ in range(6)])
            step = random.choice(("change", "change", "reject", "call"))
            if step == "change":
                authorization_server.switch(approve=person.name)
                await asyncio.gather(person.sign_out() if person.signed_in else person.sign_in(), busy)
            elif step == "reject":
                await busy
                protected_server.reject_known_tokens()
            else:
                await asyncio.gather(busy, calls_of([random.choice(list(USERS)) for _ in range(6)]))

    of_sessions, of_tokens = defaultdict(set), defaultdict(set)
    sent = protected_server.seen("tools/call")
    assert len({request["sub"] for request in sent}) > 1, "nobody was there to be mistaken for"
    for request in sent:
        if request["sub"] is not None:
            assert request["sub"] == request["arguments"]["caller"]
    for request in protected_server.seen():
        if request["sub"] is not None:
            of_tokens[request["jti"]].add(request["sub"])
            of_sessions[request["session"]].add(request["sub"])
    assert (of_sessions.keys() == {None}) is (era == "modern")
    of_sessions.pop(None, None)
    assert all(len(users) == 1 for users in [*of_sessions.values(), *of_tokens.values()])
