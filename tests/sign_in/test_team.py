"""Users of one gateway sign in for themselves: each call carries the caller's token, and nobody else's."""

from dataclasses import replace

import pytest

from downstreams import WAIT_S
from guarantees import guarantee
from sign_ins import desk, protected
from teams import ANN, BOB, Visitor, found, team
from toolscout.downstream import server
from toolscout.errors import SignInRequiredError
from toolscout.models import Caller, Scope
from toolscout.token_cipher import new_key
from waiting import eventually

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def config(authorization_server, protected_server):
    return protected(protected_server, authorization_server, per_user=True)


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
            await here.live.call_tool("whoami", {}, caller=BOB)
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


async def test_what_is_listed_for_one_user_changes_no_call_of_another(
    config, tmp_path, authorization_server, protected_server, monkeypatch
):
    """A parameter that the server wants in a header too, in the tool of one user. The list of another is forgotten."""
    monkeypatch.setattr(server, "_MAX_LISTS", 2)
    protected_server.switch(tools={"bob": ["whoami"], "cal": ["whoami"]})
    async with desk(config, tmp_path) as here:
        for caller in (ANN, BOB):
            authorization_server.switch(approve=caller.user)
            await here.sign_in(caller.scope)
            await here.scout.servers.list_tools("notes", caller.scope)
        assert here.scout.servers.statuses()[0].tools == 3
        live = here.scout.servers.get("notes")
        assert live is not None
        await live.call_tool("count_notes", {"folder": "inbox"}, caller=ANN)
        assert live.status.tools == 3
        cal = Caller(tenant="acme", user="cal")
        authorization_server.register_user(cal.user)
        authorization_server.switch(approve=cal.user)
        await here.sign_in(cal.scope)
        await here.scout.servers.list_tools("notes", cal.scope)
        assert live.status.tools == 3, "the list that was used last stays"
        protected_server.switch(tools={})
        await live.call_tool("count_notes", {"folder": "sent"}, caller=BOB)
    assert [seen["folder"] for seen in protected_server.seen("tools/call")] == ["inbox", "sent"]


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request):
    """The settings of replicas that share a store and a key."""
    if request.param == "sqlite":
        return {"token_key": new_key()}
    return {"store": request.getfixturevalue("database")(), "token_key": new_key()}


async def test_a_sign_in_begins_at_one_replica_ends_at_another_and_goes_with_its_user(
    config, tmp_path, authorization_server, shared
):
    async with (
        team(config, tmp_path, **shared) as one,
        team(config, tmp_path, **{**shared, "public_url": one.url}) as other,
        Visitor(one) as ann,
        Visitor(one) as bob,
    ):
        keys = {"ann": await one.key(ANN), "bob": await one.key(BOB)}
        authorization_server.switch(approve="ann")
        callback = (await ann.callback(keys["ann"])).replace(one.url, other.url)
        assert "You are signed in" in (await ann.get(callback)).text
        for here in (one, other):
            assert (await ann.get(callback.replace(other.url, here.url))).status_code == 400, "it was used"
            await here.until_listed(ANN)
            assert await here.who(keys["ann"]) == "ann"
        assert "You are connected" in (await ann.begin(keys["ann"])).text

        authorization_server.switch(approve="bob")
        callback = await bob.callback(keys["bob"])
        for user in ("ann", "bob"):
            await other.scout.remove_user(user, caller=Caller(tenant="acme"))
        assert "has ended already" in (await bob.get(callback)).text
        assert await one.accounts.stored.find_all() == []
        assert [grant["revoked"] for grant in authorization_server.grants() if grant["user"] == "ann"] == [True]

        async def refused():
            try:
                await one.live.call_tool("whoami", {}, caller=ANN)
            except SignInRequiredError:
                return True
            return False

        await eventually(refused, WAIT_S)
