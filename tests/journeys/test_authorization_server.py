"""The authorization server of the tests keeps the rules that clients rely on, and breaks those that a switch names."""

import asyncio
import secrets
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from oauth_grants import ACCESS_TOKEN, DEVICE_CODE, TOKEN_EXCHANGE, challenge_of
from waiting import eventually
from web import serving

CALLBACK = "http://127.0.0.1:1/callback"
RESOURCE = "https://tools.example.com/mcp"
VERIFIER = secrets.token_urlsafe(48)


@asynccontextmanager
async def talking_to(server):
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False, timeout=30) as http:
        yield http


@pytest.fixture
async def http(authorization_server):
    authorization_server.register_client("app", CALLBACK)
    authorization_server.register_client("service", secret="s:ecret")
    authorization_server.switch(approve="ann")
    async with talking_to(authorization_server) as http:
        yield http


async def authorized(http, **other):
    """Ask for a code, and return what comes back to the client."""
    query = {
        "response_type": "code",
        "client_id": "app",
        "redirect_uri": CALLBACK,
        "state": "s",
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
        "resource": RESOURCE,
        **other,
    }
    answer = await http.get("/authorize", params={name: value for name, value in query.items() if value})
    assert answer.status_code == 303, answer.text
    return {name: value for name, (value,) in parse_qs(urlsplit(answer.headers["location"]).query).items()}


async def token(http, grant_type, *, auth=None, **form):
    if auth is None:
        form.setdefault("client_id", "app")
    answer = await http.post("/token", data={"grant_type": grant_type, **form}, auth=auth)
    return answer.json()


async def redeemed(http, code, **other):
    form = {"code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER, **other}
    return await token(http, "authorization_code", **form)


async def signed_in(http):
    return await redeemed(http, (await authorized(http))["code"])


async def test_a_code_comes_back_with_state_and_issuer_and_gives_a_token_for_the_resource(authorization_server, http):
    back = await authorized(http, scope="tools:write")
    assert (back["state"], back["iss"]) == ("s", authorization_server.url)
    given = await redeemed(http, back["code"])
    key = jwt.PyJWKSet.from_dict((await http.get("/keys")).json()).keys[0]
    claims = jwt.decode(given["access_token"], key, ["ES256"], audience=RESOURCE, issuer=authorization_server.url)
    assert (claims["sub"], claims["client_id"], claims["scope"]) == ("ann", "app", "tools:write")
    assert given["expires_in"] == 600


async def test_a_code_works_once_and_a_second_use_ends_the_grant(authorization_server, http):
    code = (await authorized(http))["code"]
    first = await redeemed(http, code)
    assert (await redeemed(http, code))["error"] == "invalid_grant"
    assert (await token(http, "refresh_token", refresh_token=first["refresh_token"]))["error"] == "invalid_grant"
    assert [grant["revoked"] for grant in authorization_server.grants()] == [True]


@pytest.mark.parametrize(
    "wrong",
    [
        {"code_verifier": "x" * 43},
        {"redirect_uri": "http://127.0.0.1:2/callback"},
        {"client_id": "other"},
        {"code": "none"},
    ],
)
async def test_a_code_of_another_request_is_refused(authorization_server, http, wrong):
    authorization_server.register_client("other", CALLBACK)
    code = (await authorized(http))["code"]
    assert (await redeemed(http, **{"code": code, **wrong}))["error"] == "invalid_grant"


async def test_a_token_for_another_resource_than_the_consent_is_refused(http):
    code = (await authorized(http))["code"]
    assert (await redeemed(http, code, resource="https://other.example.com"))["error"] == "invalid_target"


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "everything"}, "invalid_scope"),
        ({"resource": "no address"}, "invalid_target"),
    ],
)
async def test_a_wrong_request_comes_back_as_an_error(authorization_server, http, wrong, error):
    back = await authorized(http, **wrong)
    assert (back["error"], back["state"], back["iss"]) == (error, "s", authorization_server.url)


async def test_nobody_is_sent_to_an_address_that_is_not_registered(http):
    for uri in ("https://attacker.example/callback", "http://127.0.0.1:1/other", "http://127.0.0.1.attacker.example/"):
        answer = await http.get("/authorize", params={"client_id": "app", "redirect_uri": uri})
        assert (answer.status_code, answer.headers.get("location")) == (400, None)


async def test_the_page_is_answered_once(authorization_server, http):
    authorization_server.switch(approve="")
    query = {"response_type": "code", "client_id": "app", "redirect_uri": "http://127.0.0.1:9/callback"}
    pkce = {"code_challenge": challenge_of(VERIFIER), "code_challenge_method": "S256"}
    page = (await http.get("/authorize", params={**query, **pkce})).text
    form = {"request": page.split("name=request value='")[1].split("'")[0], "user": "bob", "decision": "allow"}
    assert (await http.post("/decision", data=form)).headers["location"].startswith("http://127.0.0.1:9/callback?code=")
    assert (await http.post("/decision", data=form)).status_code == 400


async def test_refresh_tokens_rotate_and_an_old_one_ends_the_grant(authorization_server, http):
    first = await signed_in(http)
    second = await token(http, "refresh_token", refresh_token=first["refresh_token"])
    assert second["refresh_token"] != first["refresh_token"]
    assert second["access_token"] != first["access_token"]
    for old in (first, second):
        assert (await token(http, "refresh_token", refresh_token=old["refresh_token"]))["error"] == "invalid_grant"
    assert authorization_server.counts()["token:refresh_token"] == 3


async def test_an_old_refresh_token_can_be_refused_without_ending_the_grant(authorization_server, http):
    authorization_server.switch(reuse_ends_grant=False)
    first = await signed_in(http)
    second = await token(http, "refresh_token", refresh_token=first["refresh_token"])
    assert (await token(http, "refresh_token", refresh_token=first["refresh_token"]))["error"] == "invalid_grant"
    assert "access_token" in await token(http, "refresh_token", refresh_token=second["refresh_token"])


async def test_a_refresh_does_not_widen_the_scope(http):
    first = await signed_in(http)
    asked = {"refresh_token": first["refresh_token"], "scope": "tools:read tools:write"}
    assert (await token(http, "refresh_token", **asked))["error"] == "invalid_scope"


async def test_a_revoked_refresh_token_is_refused(authorization_server, http):
    first = await signed_in(http)
    for revoked in (first["access_token"], first["refresh_token"], "unknown"):
        assert (await http.post("/revoke", data={"token": revoked, "client_id": "app"})).status_code == 200
    assert (await token(http, "refresh_token", refresh_token=first["refresh_token"]))["error"] == "invalid_grant"
    assert first["access_token"] in authorization_server.revoked_tokens()


async def asked_by_device(http):
    return (await http.post("/device_authorization", data={"client_id": "app", "resource": RESOURCE})).json()


async def test_a_device_waits_until_its_user_clicks(authorization_server, http, browser_page):
    authorization_server.switch(approve="")
    device = await asked_by_device(http)
    waiting = await token(http, DEVICE_CODE, device_code=device["device_code"])
    assert waiting["error"] == "authorization_pending"
    await browser_page.goto(device["verification_uri_complete"])
    await browser_page.get_by_label("User").fill("bob")
    await browser_page.get_by_role("button", name="Allow").click()
    await browser_page.get_by_text("Return to your device").wait_for()
    given = await token(http, DEVICE_CODE, device_code=device["device_code"])
    claims = jwt.decode(given["access_token"], options={"verify_signature": False})
    assert (claims["sub"], claims["aud"]) == ("bob", RESOURCE)
    assert (await token(http, DEVICE_CODE, device_code=device["device_code"]))["error"] == "invalid_grant"


async def test_a_device_is_refused_by_its_user_and_told_to_slow_down(authorization_server, http):
    authorization_server.switch(approve="", device_interval_s=600)
    device = await asked_by_device(http)
    assert device["interval"] == 600
    errors = [(await token(http, DEVICE_CODE, device_code=device["device_code"]))["error"] for _ in range(2)]
    assert errors == ["authorization_pending", "slow_down"]
    authorization_server.switch(device_interval_s=0)
    authorization_server.decide_device(device["user_code"])
    assert (await token(http, DEVICE_CODE, device_code=device["device_code"]))["error"] == "access_denied"


async def test_a_callers_token_is_exchanged_for_one_with_another_audience(authorization_server, http):
    caller = authorization_server.token(sub="ann", aud="https://gateway.example.com", scope="tools:read")
    form = {"subject_token": caller, "subject_token_type": ACCESS_TOKEN, "resource": RESOURCE}
    given = await token(http, TOKEN_EXCHANGE, auth=("service", "s%3Aecret"), **form)
    claims = jwt.decode(given["access_token"], options={"verify_signature": False})
    assert (claims["sub"], claims["aud"], claims["act"]) == ("ann", RESOURCE, {"sub": "service"})
    assert given["issued_token_type"] == ACCESS_TOKEN
    assert (await token(http, TOKEN_EXCHANGE, **form))["error"] == "unauthorized_client"
    form["subject_token"] = authorization_server.token(sub="ann", aud="x", iss="https://attacker.example")
    assert (await token(http, TOKEN_EXCHANGE, auth=("service", "s%3Aecret"), **form))["error"] == "invalid_request"


@pytest.mark.parametrize(
    "wrong", [{"client_id": "https://other.example/app"}, {"redirect_uris": []}, {"client_secret": "s"}]
)
async def test_a_document_that_is_not_of_the_client_is_refused(authorization_server, http, wrong):
    client = {"client_id": "https://app.example/app", "redirect_uris": [CALLBACK]}
    app = Starlette(routes=[Route("/app", lambda _: JSONResponse({**client, **wrong}))])
    async with serving(app) as where:
        authorization_server.switch(origins={"https://app.example": where})
        query = {"client_id": client["client_id"], "redirect_uri": CALLBACK}
        answer = await http.get("/authorize", params=query)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


async def test_a_client_with_a_secret_must_show_it(http):
    for auth in (("service", "wrong"), ("service", ""), ("nobody", "s%3Aecret")):
        assert (await token(http, "client_credentials", auth=auth))["error"] == "invalid_client"
    assert "access_token" in await token(http, "client_credentials", auth=("service", "s%3Aecret"), resource=RESOURCE)


async def test_switches_break_one_endpoint_at_a_time(authorization_server, http):
    first = await signed_in(http)
    private = "http://192.0.2.1/"
    elsewhere = {"token_endpoint": private, "registration_endpoint": None}
    authorization_server.switch(down=["token"], redirect={"jwks": private}, metadata=elsewhere, registration=False)
    assert (await http.post("/token", data={})).status_code == 503
    assert (await http.get("/keys")).headers["location"] == private
    metadata = (await http.get("/.well-known/oauth-authorization-server")).json()
    assert metadata["token_endpoint"] == private
    assert "registration_endpoint" not in metadata
    assert (await http.post("/register", json={"redirect_uris": [CALLBACK]})).status_code == 403
    authorization_server.switch(down=[], refuse_refresh=True)
    assert (await token(http, "refresh_token", refresh_token=first["refresh_token"]))["error"] == "invalid_grant"
    authorization_server.reset()
    assert "registration_endpoint" in (await http.get("/.well-known/openid-configuration")).json()


async def test_a_token_can_have_another_audience_than_was_asked_for(authorization_server, http):
    authorization_server.switch(audience="https://other.example.com")
    claims = jwt.decode((await signed_in(http))["access_token"], options={"verify_signature": False})
    assert claims["aud"] == "https://other.example.com"


async def test_an_answer_can_lack_its_expiry_and_the_refresh_token(authorization_server, http):
    authorization_server.switch(tell_expiry=False, refresh_tokens=False)
    assert set(await signed_in(http)) == {"access_token", "token_type", "scope"}


async def test_a_held_endpoint_answers_when_it_is_let_go(authorization_server, http):
    code = (await authorized(http))["code"]
    authorization_server.switch(held=["token"])
    asked = asyncio.create_task(redeemed(http, code))

    async def arrived():
        return authorization_server.counts().get("token", 0) == 1

    await eventually(arrived, 10)
    assert not asked.done()
    authorization_server.switch(held=[])
    assert "access_token" in await asked
