"""The pages at which users sign in: who may use them, how often, and how they sign out again."""

import base64
import re
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest

from guarantees import guarantee
from sign_ins import protected
from teams import ANN, BOB, Visitor, found, team
from toolscout.errors import NotAllowedError
from toolscout.gateway import http_limits
from toolscout.models import Caller, Scope

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server, per_user=True)


async def test_a_key_without_a_user_can_neither_sign_in_nor_call(config, tmp_path, protected_server):
    async with team(config, tmp_path) as here, Visitor(here) as browser:
        key = await here.key(Caller(tenant="acme"))
        refused = await browser.begin(key)
        assert refused.status_code == 403
        assert "belongs to no user" in refused.text
        with pytest.raises(NotAllowedError, match="comes from no user"):
            await here.live.call_tool("whoami", {}, caller=Caller(tenant="acme"))
        with pytest.raises(NotAllowedError, match="comes from no user"):
            await here.live.call_tool("whoami", {}, caller=Caller())
        assert await here.accounts.stored.find_all() == []
    assert protected_server.seen("tools/call") == []


async def test_an_account_without_a_user_lists_no_tools_for_its_tenant(config, tmp_path, protected_server):
    async with team(config, tmp_path) as here, Visitor(here) as ann:
        await ann.sign_in(await here.key(ANN))
        (account,) = await here.accounts.stored.find_all()
        await here.accounts.stored.put(replace(account, scope=Scope(tenant="acme")))
    async with team(config, tmp_path) as here:
        await here.until_listed(ANN)
        assert await here.tools(BOB) == []


async def test_a_server_without_tenants_is_not_shown_to_other_tenants(config, tmp_path):
    async with team(replace(config, tenants=("local",)), tmp_path) as here, Visitor(here) as ann:
        assert (await ann.begin(await here.key(ANN))).status_code == 404
        assert (await ann.begin(await here.key(Caller(user="ann")))).status_code == 200


@guarantee("access:absent-equals-forbidden")
async def test_a_server_that_the_policy_denies_looks_like_one_that_does_not_exist(config, tmp_path):
    """Also where the caller's key names no user, and for a server that an operator signs in to for everyone."""
    policy = '[[allow]]\nwho = ["anyone"]\n[[deny]]\nwho = ["user:bob", "tenant:zeta"]\nservers = ["notes", "shared"]'
    shared = replace(config, title="shared", per_user=False)
    async with team(config, tmp_path, shared, policy=policy) as here, Visitor(here) as bob:
        for caller in (BOB, Caller(tenant="zeta")):
            key = await here.key(caller)
            denied, absent = await bob.begin(key), await bob.begin(key, "absent")
            assert (denied.status_code, denied.text) == (absent.status_code, absent.text)
            assert denied.status_code == 404
            as_caller = {"Authorization": f"Bearer {key}"}
            said = [await bob.post(f"/console/sign-in/{name}", headers=as_caller) for name in ("notes", "shared", "no")]
            assert {answer.status_code for answer in said} == {400}
            assert len({re.sub("'(notes|shared|no)'", "", answer.text) for answer in said}) == 1
        assert await here.accounts.stored.find_all() == []
        assert (await bob.begin(await here.key(ANN))).status_code == 200


async def test_a_form_of_another_alphabet_is_refused(config, tmp_path):
    async with team(config, tmp_path) as here, Visitor(here) as ann:
        await ann.get("/connect/notes")
        for check in ("é", "", "x"):
            assert (await ann.post("/connect/notes", data={"check": check, "key": "x"})).status_code == 403
        assert (await ann.post("/connect/notes", data={"check": "x" * 20_000})).status_code == 403


@guarantee("load:limits")
async def test_wrong_keys_in_the_form_count_like_those_of_agents(config, tmp_path, monkeypatch):
    monkeypatch.setattr(http_limits, "REFUSALS_PER_MINUTE", 3)
    async with team(config, tmp_path) as here, Visitor(here) as ann:
        key = await here.key(ANN)
        wrong = [f"tsk_{letter * 10}_{'s' * 43}" for letter in "abcd"]
        assert [(await ann.begin(one)).status_code for one in wrong] == [401, 401, 401, 429]
        limited = await ann.begin("letmein")
        assert limited.status_code == 429
        assert int(limited.headers["retry-after"]) >= 1
        answer = await ann.post("/mcp", json={}, headers={"Authorization": f"Bearer {wrong[0]}"})
        assert answer.status_code == 429
        assert (await here.accounts.stored.find_all()) == []
        assert key


@guarantee("load:limits")
async def test_a_users_visits_count_as_their_requests(config, tmp_path):
    policy = '[[allow]]\nwho = ["anyone"]\n[limits]\nrequests_per_minute = 2'
    async with team(config, tmp_path, policy=policy) as here, Visitor(here) as ann:
        key = await here.key(ANN)
        assert [(await ann.begin(key)).status_code for _ in range(3)] == [200, 200, 429]


async def test_an_answer_for_one_server_is_refused_at_the_callback_of_another(config, tmp_path, authorization_server):
    """A mix-up: the issuer of one server passes the browser on, to get the code of another's (RFC 9700, 4.4)."""
    other = replace(config, title="other")
    async with team(config, tmp_path, other) as here, Visitor(here) as ann:
        callback = await ann.callback(await here.key(ANN), "other")
        assert "/sign-in/callback/other?" in callback
        mixed = await ann.get(callback.replace("/callback/other?", "/callback/notes?"))
        assert mixed.status_code == 400
        assert "belongs to another server" in mixed.text
        assert (await ann.get(callback)).status_code == 400, "it was used up"
        assert await here.accounts.stored.find_all() == []
    assert "token" not in authorization_server.counts()


async def test_no_page_sends_a_browser_to_an_address_that_a_link_names(config, tmp_path, authorization_server):
    """An open redirect: a link to this gateway that ends at the address of an attacker."""
    names = ("next", "return_to", "redirect_uri", "url", "continue", "iss")
    query = "&".join(f"{name}=https://attacker.example" for name in names)
    async with team(config, tmp_path) as here, Visitor(here) as ann:
        key = await here.key(ANN)
        callback = await ann.callback(key)
        form = await ann.get(f"/connect/notes?{query}")
        check = found(r'name="check" value="([^"]+)"', form.text)
        began = await ann.post(
            f"/connect/notes?{query}", data={"key": key, "check": check, "next": "//attacker.example"}
        )
        assert found(r'href="([^"]+)"', began.text).startswith(authorization_server.url)
        elsewhere = ("/connect//attacker.example", "/connect/%2F%2Fattacker.example", "/connect/https:attacker.example")
        answers = [form, began, *[await ann.get(path) for path in elsewhere]]
        answers += [await ann.get(f"{callback}&{query}"), await ann.get(f"/sign-in/callback/notes?state=x&{query}")]
        for answer in answers:
            assert "attacker" not in answer.headers.get("location", "")
            assert "attacker" not in answer.text
        assert await here.accounts.stored.find_all() == []


async def test_a_user_sees_that_they_are_signed_in_and_disconnects(config, tmp_path, authorization_server):
    async with team(config, tmp_path) as here, Visitor(here) as ann, Visitor(here) as eve:
        key = await here.key(ANN)
        assert "Disconnect" not in (await ann.begin(key)).text
        await ann.sign_in(key)
        page = await ann.begin(key)
        assert "You are connected to notes" in page.text
        assert "ann of acme is signed in at" in page.text
        fields = {name: found(rf'name="{name}" value="([^"]+)"', page.text) for name in ("check", "ticket")}

        await eve.begin(await here.key(BOB))
        assert (await eve.post("/connect/notes", data=fields)).status_code == 403, "another browser"
        check = found(r'name="check" value="([^"]+)"', (await eve.get("/connect/notes")).text)
        assert (await eve.post("/connect/notes", data={**fields, "check": check})).status_code == 403
        assert (await ann.post("/connect/other", data=fields)).status_code == 403, "another server"
        assert (await ann.post("/connect/notes", data={"ticket": fields["ticket"]})).status_code == 403, "no check"
        deep = base64.urlsafe_b64encode(b"[" * 9_000).decode()
        for wrong in ("x", "W10=", deep, fields["ticket"][:-8] + "AAAAAAA="):
            assert (await ann.post("/connect/notes", data={**fields, "ticket": wrong})).status_code == 403
        assert len(await here.accounts.stored.find_all()) == 1

        gone = await ann.post("/connect/notes", data=fields)
        assert gone.status_code == 200
        assert "deleted and revoked" in gone.text
        assert await here.accounts.stored.find_all() == []
        assert [grant["revoked"] for grant in authorization_server.grants()] == [True]
        assert "You are connected" not in (await ann.begin(key)).text


async def test_a_user_disconnects_while_the_issuer_is_down(config, tmp_path, authorization_server):
    async with team(config, tmp_path) as here, Visitor(here) as ann:
        key = await here.key(ANN)
        await ann.sign_in(key)
        authorization_server.switch(down=["*"])
        page = await ann.begin(key)
        assert page.status_code == 502
        fields = {name: found(rf'name="{name}" value="([^"]+)"', page.text) for name in ("check", "ticket")}
        assert "they end by themselves" in (await ann.post("/connect/notes", data=fields)).text
        assert await here.accounts.stored.find_all() == []


async def test_a_second_sign_in_revokes_the_tokens_of_the_first(config, tmp_path, authorization_server):
    async with team(config, tmp_path) as here, Visitor(here) as ann:
        key = await here.key(ANN)
        await ann.sign_in(key)
        await ann.sign_in(key)
        assert [grant["revoked"] for grant in authorization_server.grants()] == [True, False]
        await here.until_listed(ANN)
        assert await here.who(key) == "ann"


async def test_the_page_of_a_gateway_with_an_https_address_names_the_document_that_describes_it(
    config, tmp_path, authorization_server
):
    origin = "https://tools.example.com"
    async with team(config, tmp_path, public_url=origin) as here, Visitor(here) as ann:
        authorization_server.switch(origins={origin: here.url})
        form = await ann.get("/connect/notes")
        cookie = form.headers["set-cookie"]
        assert cookie.startswith("__Host-toolscout=")
        assert "Secure" in cookie
        browser = {"Cookie": cookie.partition(";")[0]}  # over http, a browser would not send it
        check = found(r'name="check" value="([^"]+)"', form.text)
        fields = {"key": await here.key(ANN), "check": check}
        began = await ann.post("/connect/notes", data=fields, headers=browser)
        link = found(r'href="([^"]+)"', began.text).replace("&amp;", "&")
        assert dict(parse_qsl(urlsplit(link).query))["client_id"] == f"{origin}/sign-in/client/notes.json"
        callback = (await ann.get(link)).headers["location"]
        assert callback.startswith(f"{origin}/sign-in/callback/notes?")
        ended = await ann.get(callback.removeprefix(origin), headers=browser)
        assert "You are signed in" in ended.text
    assert "register" not in authorization_server.counts()
