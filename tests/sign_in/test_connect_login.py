"""Users say who they are at the issuer of their company, and then sign in to a server, without a key or a token."""

from dataclasses import replace

import pytest

from guarantees import guarantee
from sign_ins import protected
from teams import ANN, Visitor, found, team
from toolscout.gateway import http_limits
from toolscout.models import Scope

pytestmark = [pytest.mark.process, guarantee("signin:bound")]

GATEWAY = "https://tools.example.com/mcp"


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.register_user("ann", org="acme")
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server, per_user=True)


@pytest.fixture
def company(authorization_server):
    """The settings of a gateway that is a client of the company's issuer."""
    named = {"auth_issuer": authorization_server.url, "auth_audience": GATEWAY, "auth_tenant_claim": "org"}
    return {**named, "console_client_id": "toolscout", "operator_scope": "tools:write"}


def known(issuer, here):
    issuer.register_client("toolscout", f"{here.url}/sign-in/callback")


async def begun(visitor):
    """Return the page that leads to the issuer that knows the gateway's users."""
    check = found(r'name="check" value="([^"]+)".*\n.*name="login"', (await visitor.get("/connect/notes")).text)
    return await visitor.post("/connect/notes", data={"check": check, "login": "yes"})


async def test_a_person_signs_in_twice_with_their_browser_and_pastes_nothing(
    config, company, tmp_path, authorization_server, browser
):
    authorization_server.switch(approve="")
    async with team(config, tmp_path, **company) as here:
        known(authorization_server, here)
        page = await (await browser.new_context()).new_page()
        await page.goto(f"{here.url}/connect/notes")
        await page.get_by_role("button", name="Sign in at").click()
        for told in ("This tells the gateway who you are", "will be used by ann of acme"):
            await page.get_by_text(told).wait_for()
            await page.get_by_role("link").click()
            await page.get_by_label("User").fill("ann")
            await page.get_by_role("button", name="Allow").click()
        await page.get_by_text("You are signed in to notes").wait_for()
        await page.context.close()
        assert [account.scope for account in await here.accounts.stored.find_all()] == [ANN.scope]
        assert authorization_server.grants()[0]["scope"] == "tools:read", "no scope of operators"
        await here.until_listed(ANN)
        claims = {"sub": "ann", "aud": GATEWAY, "org": "acme", "client_id": "agent"}
        assert await here.who(authorization_server.token(**claims)) == "ann"


async def test_who_somebody_is_can_be_brought_by_their_own_browser_alone_and_once(
    config, company, tmp_path, authorization_server
):
    async with team(config, tmp_path, **company) as here, Visitor(here) as ann, Visitor(here) as eve:
        known(authorization_server, here)
        answer = await ann.get(found(r'href="([^"]+)"', (await begun(ann)).text).replace("&amp;", "&"))
        callback = answer.headers["location"]
        await eve.sign_in_as_caller()
        state = "/sign-in/callback?state=é&code=x"
        for forged in (await eve.get(callback), await ann.get(state), await ann.get(f"{callback}&code=x")):
            assert forged.status_code == 400
            assert "did not begin here" in forged.text
        assert (await ann.post("/connect/notes", data={"check": "x", "login": "yes"})).status_code == 403
        assert "used by ann of acme" in (await ann.get(callback)).text
        assert (await ann.get(callback)).status_code == 400
        assert await here.accounts.stored.find_all() == []


async def test_a_person_who_is_connected_can_disconnect_after_they_said_who_they_are(
    config, company, tmp_path, authorization_server
):
    async with team(config, tmp_path, **company) as here, Visitor(here) as ann:
        known(authorization_server, here)
        began = await ann.sign_in_as_caller()
        link = found(r'href="([^"]+)"', began.text).replace("&amp;", "&")
        await ann.get((await ann.get(link)).headers["location"])
        assert [account.scope for account in await here.accounts.stored.find_all()] == [
            Scope(tenant="acme", owner="ann")
        ]
        page = (await ann.sign_in_as_caller()).text
        assert found(r'action="([^"]+)"', page) == "/connect/notes"
        fields = {name: found(rf'name="{name}" value="([^"]+)"', page) for name in ("check", "ticket")}
        assert "deleted and revoked" in (await ann.post("/connect/notes", data=fields)).text
        assert await here.accounts.stored.find_all() == []


async def test_the_issuer_opens_no_server_that_the_person_may_not_use(config, company, tmp_path, authorization_server):
    config = replace(config, tenants=("zeta",))
    async with team(config, tmp_path, **company) as here, Visitor(here) as ann:
        known(authorization_server, here)
        authorization_server.switch(down=["*"])
        assert (await begun(ann)).status_code == 502
        authorization_server.switch(down=[])
        denied, absent = await ann.sign_in_as_caller(), await ann.sign_in_as_caller("absent")
        assert (denied.status_code, denied.text) == (absent.status_code, absent.text) == (404, absent.text)
        authorization_server.switch(audience="https://elsewhere.example.com")
        refused = await ann.sign_in_as_caller()
        assert refused.status_code == 401
        assert "does not accept your sign-in" in refused.text


@guarantee("load:limits")
async def test_a_stranger_makes_the_gateway_ask_the_issuer_a_bounded_number_of_times(
    config, company, tmp_path, authorization_server, monkeypatch
):
    monkeypatch.setattr(http_limits, "REFUSALS_PER_MINUTE", 3)
    async with team(config, tmp_path, **company) as here, Visitor(here) as eve:
        known(authorization_server, here)
        statuses = []
        for _ in range(3):
            page = await begun(eve)
            state = found(r"[?&;]state=([^&\"]+)", page.text)
            junk = f"/sign-in/callback?state={state}&code=junk&iss={authorization_server.url}"
            answer = await eve.get(junk)
            statuses.append(answer.status_code)
            assert "Max-Age=0" in answer.headers["set-cookie"], "an answer is taken once"
        assert statuses == [400, 400, 400]
        for limited in (await eve.get(junk), await begun(eve)):
            assert limited.status_code == 429
            assert int(limited.headers["retry-after"]) >= 1
        counts = authorization_server.counts()
        assert counts["token"] == 3
        assert counts["metadata"] == 1
