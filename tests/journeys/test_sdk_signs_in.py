"""The SDK's own client signs in to a server that demands tokens: what the sign-in tests stand on works with others."""

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from protected_server import running_protected_server
from sdk_sign_in import METADATA_PATH, Memory, clicking, follow, signing_in
from waiting import eventually
from web import serving

pytestmark = pytest.mark.process


async def who(client):
    return (await client.call_tool("whoami", {})).structured_content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_sign_in_gives_a_token_for_this_server(authorization_server, protected_server, mode):
    authorization_server.switch(approve="ann")
    async with signing_in(protected_server.url, follow, Memory(), mode=mode) as client:
        caller = await who(client)
        assert [tool.name for tool in (await client.list_tools()).tools] == ["whoami", "count_notes", "add_note"]
    assert (caller["sub"], caller["aud"], caller["scope"]) == ("ann", protected_server.url, "tools:read")
    counts = authorization_server.counts()
    assert {name: counts[name] for name in ("register", "authorize", "token:authorization_code")} == {
        "register": 1,
        "authorize": 1,
        "token:authorization_code": 1,
    }
    (grant,) = authorization_server.grants()
    assert (grant["user"], grant["resource"], grant["revoked"]) == ("ann", protected_server.url, False)


async def test_two_people_click_allow_in_their_browsers(authorization_server, protected_server, browser):
    protected_server.switch(tools={"bob": ["whoami"]})
    seen = {}
    for name in ("ann", "bob"):
        page = await (await browser.new_context()).new_page()
        async with signing_in(protected_server.url, clicking(page, name), Memory()) as client:
            seen[name] = [(await who(client))["sub"], len((await client.list_tools()).tools)]
        await page.context.close()
    assert seen == {"ann": ["ann", 3], "bob": ["bob", 1]}


async def test_a_person_who_clicks_deny_is_not_signed_in(authorization_server, protected_server, browser_page):
    visit = clicking(browser_page, "ann", "Deny")
    with pytest.raises(BaseException) as failed:
        async with signing_in(protected_server.url, visit, Memory()):
            pass
    assert "No authorization code received" in str(leaf(failed.value))
    assert "error=access_denied" in browser_page.url
    assert authorization_server.grants() == []


def leaf(error):
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    return error


async def test_a_client_is_known_by_its_document(authorization_server, protected_server):
    origin = "https://tools.example.com"
    document = {"client_id": f"{origin}{METADATA_PATH}", "redirect_uris": ["http://127.0.0.1/callback"]}
    app = Starlette(routes=[Route(METADATA_PATH, lambda _: JSONResponse(document))])
    async with serving(app) as where:
        authorization_server.switch(approve="ann", origins={origin: where})
        async with signing_in(protected_server.url, follow, Memory(), document_origin=origin) as client:
            assert (await who(client))["client_id"] == document["client_id"]
    counts = authorization_server.counts()
    assert "register" not in counts
    assert counts["client_document"] == 2


async def test_a_tool_that_needs_more_leads_to_a_second_consent(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    memory = Memory()
    async with signing_in(protected_server.url, follow, memory) as client:
        assert (await client.call_tool("add_note", {})).structured_content == {"notes": 1}
        assert (await who(client))["scope"] == "tools:read tools:write"
    assert len(memory.visited) == 2
    assert [seen["status"] for seen in protected_server.seen("tools/call")] == [403, 200, 200]


async def test_an_expired_token_is_refreshed_without_a_person(authorization_server, protected_server):
    authorization_server.switch(approve="ann", expires_s=1)
    protected_server.switch(leeway_s=600)
    memory = Memory()
    async with signing_in(protected_server.url, follow, memory) as client:
        first = (await who(client))["jti"]

        async def refreshed():
            return (await who(client))["jti"] != first

        await eventually(refreshed, 10)
    assert len(memory.visited) == 1
    assert authorization_server.counts()["token:refresh_token"] >= 1


async def test_a_token_that_the_server_rejects_leads_to_a_new_sign_in(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    memory = Memory()
    async with signing_in(protected_server.url, follow, memory) as client:
        await who(client)
        protected_server.reject_known_tokens()
        authorization_server.switch(approve="bob")
        assert (await who(client))["sub"] == "bob"
    assert len(memory.visited) == 2


@pytest.mark.parametrize(
    ("switches", "told"),
    [
        ({"callback_iss": "https://attacker.example"}, "iss mismatch"),
        ({"callback_iss": ""}, "missing iss"),
        ({"metadata": {"issuer": "https://attacker.example"}}, "issuer mismatch"),
    ],
)
async def test_the_client_refuses_another_issuer(authorization_server, protected_server, switches, told):
    authorization_server.switch(approve="ann", **switches)
    with pytest.raises(BaseException) as failed:
        async with signing_in(protected_server.url, follow, Memory()):
            pass
    error = leaf(failed.value)
    assert isinstance(error, OAuthFlowError)
    assert told in str(error)


@pytest.mark.parametrize(("anonymous", "listed"), [("empty", 0), ("listed", 3)])
async def test_a_server_can_list_before_the_sign_in(authorization_server, protected_server, anonymous, listed):
    protected_server.switch(anonymous=anonymous)
    authorization_server.switch(approve="ann")
    memory = Memory()
    async with signing_in(protected_server.url, follow, memory) as client:
        assert len((await client.list_tools()).tools) == listed
        assert memory.visited == []
        assert (await who(client))["sub"] == "ann"


async def test_an_issuer_of_another_make_signs_a_person_in(independent_issuer, browser_page):
    independent_issuer.register_user("eve")

    async def visit(url):
        await browser_page.goto(url)
        await browser_page.get_by_placeholder("Enter any login").fill("eve")
        await browser_page.get_by_placeholder("and password").fill("any")
        await browser_page.get_by_role("button", name="Sign-in").click()
        await browser_page.get_by_role("button", name="Continue").click()
        await browser_page.wait_for_url("**/callback?**")

    memory = Memory()
    with running_protected_server(independent_issuer.url) as server:
        async with signing_in(server.url, visit, memory) as client:
            caller = await who(client)
    assert (caller["sub"], caller["aud"], caller["scope"]) == ("eve", server.url, "tools:read")
    assert memory.tokens is not None
    assert memory.tokens.refresh_token
    assert httpx2.URL(memory.visited[0]).path == "/auth"
