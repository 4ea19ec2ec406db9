"""Users of one gateway sign in for themselves: each call carries the caller's token, and nobody else's."""

import asyncio
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from random import Random

import httpx2
import pytest

from downstreams import QUICK, WAIT_S
from guarantees import guarantee
from servers import free_port
from sign_ins import consent, desk, protected
from toolscout import Scout
from toolscout.config import Config
from toolscout.errors import SignInRequiredError
from toolscout.gateway.auth.authentication import authentication_for
from toolscout.gateway.host_check import allowed_hosts
from toolscout.gateway.http import make_app
from toolscout.gateway.http_listener import bind, serve_in_background
from toolscout.gateway.server import Gateway
from toolscout.models import Caller, Scope
from waiting import eventually
from web import client_as

pytestmark = [pytest.mark.process, guarantee("signin:bound")]

ANN, BOB = Caller(tenant="acme", user="ann"), Caller(tenant="acme", user="bob")


@pytest.fixture
def config(authorization_server, protected_server):
    return protected(protected_server, authorization_server, per_user=True)


@dataclass
class Team:
    """A gateway for a team."""

    scout: Scout
    url: str

    @property
    def accounts(self):
        """Return the accounts of the scout."""
        assert self.scout.servers.accounts is not None
        return self.scout.servers.accounts

    async def key(self, caller):
        """Create a key of a user."""
        return (await self.scout.api_keys.create(tenant=caller.tenant, user=caller.user))[0]

    async def who(self, key):
        """Call `whoami` as the owner of a key, over MCP."""
        async with client_as(self.url, Authorization=f"Bearer {key}") as (client, _):
            result = await client.call_tool("call_tool", {"name": "notes__whoami", "arguments": {}})
            return (result.structured_content or {}).get("sub", result.content)

    async def tools(self, caller):
        """Return the tools that a user sees."""
        answer = await self.scout.list_tools(caller=self.scout.narrow(caller))
        return [match.tool.name for match in answer]


@asynccontextmanager
async def team(config, folder):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = replace(QUICK, store=f"sqlite:///{folder / 'team.db'}", public_url=url, embedder="none")
    async with Scout.open(settings=settings) as scout:
        await scout.connect(Config(servers=(config,)))
        gateway = Gateway(scout, settings=settings, authenticated=True)
        authentication = authentication_for(settings, scout.api_keys.find)
        app = make_app(gateway, settings, allowed_hosts("127.0.0.1", port), authentication)
        async with gateway.running(), serve_in_background(app, bind("127.0.0.1", port)):
            yield Team(scout, url)


def found(pattern, text):
    (one,) = re.findall(pattern, text)
    return str(one)


class Visitor(httpx2.AsyncClient):
    """A person's browser, as far as cookies and redirects go."""

    def __init__(self, team):
        super().__init__(base_url=team.url, trust_env=False, timeout=30)

    async def begin(self, key, **headers):
        """Enter a key at the gateway, and return the page that leads to the issuer."""
        form = await self.get("/connect/notes")
        check = found(r'name="check" value="([^"]+)"', form.text)
        return await self.post("/connect/notes", data={"key": key, "check": check}, headers=headers)

    async def callback(self, key):
        """Sign in at the issuer, and return the address that it sends the browser to."""
        answer = await self.begin(key)
        link = found(r'href="([^"]+)"', answer.text).replace("&amp;", "&")
        return (await self.get(link)).headers["location"]


async def test_two_users_sign_in_with_their_browsers_and_call_as_themselves(
    config, tmp_path, authorization_server, protected_server, browser
):
    protected_server.switch(tools={"bob": ["whoami"]})
    async with team(config, tmp_path) as here:
        keys = {"ann": await here.key(ANN), "bob": await here.key(BOB)}
        for name, key in keys.items():
            page = await (await browser.new_context()).new_page()
            await page.goto(f"{here.url}/connect/notes")
            await page.get_by_label("Key or token").fill(key)
            await page.get_by_role("button", name="Go on").click()
            await page.get_by_text(f"{name} of acme").wait_for()
            await page.get_by_role("link").click()
            await page.get_by_label("User").fill(name)
            await page.get_by_role("button", name="Allow").click()
            await page.get_by_text("You are signed in to notes").wait_for()
            await page.context.close()

        async def listed():
            return [await here.tools(ANN), await here.tools(BOB)] == [["add_note", "count_notes", "whoami"], ["whoami"]]

        await eventually(listed, WAIT_S)
        for _ in range(2):
            assert [await here.who(keys["ann"]), await here.who(keys["bob"])] == ["ann", "bob"]
        assert await here.tools(Caller(tenant="acme", user="eve")) == []
        assert await here.tools(Caller(tenant="zeta", user="ann")) == []


async def test_a_user_who_is_not_signed_in_gets_the_link_and_nobody_elses_token(
    config, tmp_path, authorization_server, protected_server
):
    authorization_server.switch(approve="ann")
    async with team(config, tmp_path) as here, Visitor(here) as ann:
        assert "You are signed in" in (await ann.get(await ann.callback(await here.key(ANN)))).text
        with pytest.raises(SignInRequiredError) as failed:
            await here.scout.servers.get("notes").call_tool("whoami", {}, caller=BOB)
        assert failed.value.hint == f"open {here.url}/connect/notes and sign in"
    assert protected_server.seen("tools/call") == []


async def test_a_stolen_callback_link_is_of_no_use_in_another_browser_or_twice(config, tmp_path, authorization_server):
    authorization_server.switch(approve="ann")
    async with team(config, tmp_path) as here, Visitor(here) as ann, Visitor(here) as eve:
        key = await here.key(ANN)
        callback = await ann.callback(key)
        assert (await eve.get(callback)).status_code == 400
        await eve.begin(await here.key(Caller(tenant="acme", user="eve")))
        stolen = await eve.get(callback)
        assert stolen.status_code == 400
        assert "did not begin in this browser" in stolen.text
        stored = here.accounts.stored
        assert await stored.find_all() == []
        assert "You are signed in" in (await ann.get(callback)).text
        again = await ann.get(callback)
        assert again.status_code == 400
        assert [account.scope for account in await stored.find_all()] == [Scope(tenant="acme", owner="ann")]


async def test_another_site_can_neither_begin_nor_read_a_sign_in(config, tmp_path):
    async with team(config, tmp_path) as here, Visitor(here) as ann, Visitor(here) as eve:
        key = await here.key(Caller(tenant="acme", user="eve"))
        assert (await ann.post("/connect/notes", data={"key": key})).status_code == 403
        form = await eve.get("/connect/notes")
        check = found(r'name="check" value="([^"]+)"', form.text)
        await ann.get("/connect/notes")
        assert (await ann.post("/connect/notes", data={"key": key, "check": check})).status_code == 403
        assert (await ann.begin(key, Origin="https://attacker.example")).status_code == 403
        assert "frame-ancestors 'none'" in form.headers["content-security-policy"]
        cookie = form.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie


async def test_only_a_valid_key_and_a_server_of_the_users_tenant_lead_to_an_issuer(config, tmp_path):
    async with team(replace(config, tenants=("acme",)), tmp_path) as here, Visitor(here) as ann:
        assert (await ann.begin("tsk_abcdefghij_wrong")).status_code == 401
        assert (await ann.begin(await here.key(Caller(tenant="zeta", user="ann")))).status_code == 404
        assert (await ann.get("/connect/other")).status_code == 200
        assert (await ann.begin(await here.key(ANN))).status_code == 200


@pytest.mark.parametrize("seed", range(4))
async def test_interleaved_sign_ins_calls_and_rejections_of_users_never_mix_their_tokens(
    config, tmp_path, authorization_server, protected_server, seed
):
    """Random interleavings: a call is made as its own user, whoever else is signed in."""
    random = Random(seed)
    names = ("ann", "bob")
    async with desk(config, tmp_path) as here:
        accounts = here.accounts
        signed_in = set()

        async def sign_in(name):
            scope = Scope(tenant="acme", owner=name)
            pending = await accounts.begin("notes", config, scope, "http://127.0.0.1:8799/callback")
            authorization_server.switch(approve=name)
            await accounts.finish(config, pending, await consent(pending.link))
            signed_in.add(name)

        async def call(name):
            try:
                return name, (await here.call(caller=Caller(tenant="acme", user=name)))["sub"]
            except SignInRequiredError:
                return name, None

        for _ in range(30):
            step = random.choice(("sign in", "sign in", "sign out", "reject", "call", "call", "call"))
            name = random.choice(names)
            if step == "sign in":
                await sign_in(name)
            elif step == "sign out" and name in signed_in:
                account = await accounts.stored.find(Scope(tenant="acme", owner=name), "notes")
                assert account is not None
                await accounts.sign_out(account, config)
                signed_in.discard(name)
            elif step == "reject":
                protected_server.reject_known_tokens()
            else:
                results = await asyncio.gather(*(call(random.choice(names)) for _ in range(8)))
                # For a second after signing out, the token may still be used, by its own user.
                assert all(sub == name or (sub is None and name not in signed_in) for name, sub in results), results
