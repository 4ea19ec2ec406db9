"""Callers come with a token of their company's issuer. Calls carry another one that it gives in exchange for it."""

import asyncio
from dataclasses import replace

import httpx2
import jwt
import pytest

from downstreams import WAIT_S, until
from guarantees import guarantee
from sign_ins import desk, protected
from teams import ANN, BOB, Visitor, team
from toolscout.config import Config
from toolscout.errors import NotAllowedError, ServerUnavailableError
from toolscout.models import Caller
from waiting import eventually

pytestmark = [pytest.mark.process, guarantee("signin:bound", "auth:no-passthrough")]

GATEWAY = "https://tools.example.com/mcp"
EXCHANGE = "token:urn:ietf:params:oauth:grant-type:token-exchange"


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.register_client("gateway", secret="hush")
    oauth = {"grant_type": "token_exchange", "client_id": "gateway", "client_secret": "hush"}
    return protected(protected_server, authorization_server, oauth=oauth, concurrency=100)


@pytest.fixture
def for_each_user(config):
    return replace(config, per_user=True)


@pytest.fixture
def caller(authorization_server):
    """What returns a caller with a token for the gateway."""

    def made(user, **claims):
        usual = {"sub": user, "aud": GATEWAY, "org": "acme", "client_id": "host"}
        return Caller(tenant="acme", user=user, token=authorization_server.token(**{**usual, **claims}))

    return made


@pytest.fixture
def company(authorization_server):
    """The settings of a gateway whose callers come with tokens of the issuer."""
    return {"auth_issuer": authorization_server.url, "auth_audience": GATEWAY, "auth_tenant_claim": "org"}


def exchanges(issuer):
    return issuer.counts().get(EXCHANGE, 0)


def jti(token):
    return jwt.decode(token, options={"verify_signature": False})["jti"]


async def test_calls_over_http_carry_a_token_for_the_server_and_never_the_callers(
    config, tmp_path, authorization_server, protected_server, caller, company
):
    ann, bob = caller("ann"), caller("bob")
    async with team(config, tmp_path, **company) as here:
        await here.until_listed(ANN)
        for who in (ann, bob, ann):
            result = await here.call(who.token, "call_tool", name="notes__whoami", arguments={})
            claims = result.structured_content
            assert (claims["sub"], claims["aud"], claims["act"]) == (who.user, config.url, {"sub": "gateway"})
        async with httpx2.AsyncClient(trust_env=False, headers={"Authorization": f"Bearer {bob.token}"}) as http:
            over_rest = await http.post(f"{here.url}/api/v1/tools/notes__whoami/call", json={"arguments": {}})
        assert over_rest.json()["result"]["structuredContent"]["sub"] == "bob", over_rest.text
        key = await here.key(ANN)
        refused = await here.call(key, "call_tool", name="notes__whoami", arguments={})
        assert "this call has none" in refused.content[0].text
    assert exchanges(authorization_server) == 2
    callers = {jti(ann.token), jti(bob.token)}
    assert {seen["status"] for seen in protected_server.seen("tools/call")} == {200}
    assert not callers & {seen["jti"] for seen in protected_server.seen()}
    assert {seen["sub"] for seen in protected_server.seen("tools/list")} == {"gateway"}


async def test_each_callers_tools_are_listed_with_their_own_token_and_are_theirs(
    for_each_user, tmp_path, protected_server, caller, company
):
    protected_server.switch(tools={"bob": ["whoami"]})
    async with team(for_each_user, tmp_path, **company) as here, Visitor(here) as visitor:

        async def seen_by(who):
            answer = await here.call(who.token, "search_tools", query="count notes or tell who calls", limit=10)
            return sorted(tool["name"] for tool in answer.structured_content["tools"])

        async def listed():
            ann, bob = await seen_by(caller("ann")), await seen_by(caller("bob"))
            return (ann, bob) == (["add_note", "count_notes", "whoami"], ["whoami"])

        await eventually(listed, WAIT_S)
        assert await here.tools(Caller(tenant="acme", user="eve")) == []
        assert await here.who(caller("bob").token) == "bob"
        assert (await visitor.begin(await here.key(BOB))).status_code == 404, "nobody signs in there"
    assert {seen["sub"] for seen in protected_server.seen("tools/list")} == {"ann", "bob"}


async def test_the_tools_of_all_users_go_with_the_server(for_each_user, tmp_path, authorization_server, caller):
    ann, bob = caller("ann"), caller("bob")
    options = {"auth_issuer": authorization_server.url}
    open_to_all = replace(for_each_user, tenants="all")

    for who in (ann, bob):
        async with desk(open_to_all, tmp_path, **options) as here:

            async def listed(here=here, who=who):
                here.scout.narrow(who)
                return (await here.scout.overview(caller=who)).total == 3

            await eventually(listed, WAIT_S)
    async with desk(open_to_all, tmp_path, **options) as here:
        await (await here.scout.connect(Config())).settled()
        for who in (ann, bob):
            assert (await here.scout.overview(caller=who)).total == 0


async def test_a_hundred_calls_exchange_a_token_once_and_once_more_when_it_was_rejected(
    config, tmp_path, authorization_server, protected_server, caller
):
    ann = caller("ann")
    async with desk(config, tmp_path) as here:
        answers = await asyncio.gather(*(here.call(caller=ann) for _ in range(100)))
        assert {answer["sub"] for answer in answers} == {"ann"}
        assert exchanges(authorization_server) == 1
        protected_server.reject_known_tokens()
        answers = await asyncio.gather(*(here.call(caller=ann) for _ in range(100)))
        assert {answer["sub"] for answer in answers} == {"ann"}
    assert exchanges(authorization_server) == 2


async def test_two_tokens_of_one_user_share_neither_token_nor_session(
    config, tmp_path, authorization_server, protected_server, caller
):
    weak, strong = caller("ann", scope="tools:read"), caller("ann", scope="tools:read tools:write")
    async with desk(config, tmp_path) as here:
        assert (await here.call(caller=strong))["scope"] == "tools:read tools:write"
        assert (await here.call(caller=weak))["scope"] == "tools:read"
    calls = protected_server.seen("tools/call")
    assert len({seen["jti"] for seen in calls}) == 2


async def test_a_server_that_wants_more_gets_a_token_that_allows_it(
    config, tmp_path, authorization_server, protected_server, caller
):
    ann = caller("ann", scope="tools:read")
    async with desk(config, tmp_path) as here:
        assert await here.call("add_note", caller=ann) == {"notes": 1}
        assert (await here.call(caller=ann))["scope"] == "tools:read tools:write"
        assert exchanges(authorization_server) == 2
        authorization_server.switch(answers={"token": (400, {"error": "invalid_scope"})})
        bob = caller("bob")
        with pytest.raises(NotAllowedError, match="invalid_scope"):
            await here.call("add_note", caller=bob)
    assert [seen["status"] for seen in protected_server.seen("tools/call") if seen["tool"] == "add_note"] == [403, 200]


async def test_an_issuer_that_refuses_is_asked_once_and_told_as_not_allowed(
    config, tmp_path, authorization_server, protected_server, caller
):
    async with desk(config, tmp_path) as here:
        before = authorization_server.counts()["token"]
        authorization_server.switch(answers={"token": (400, {"error": "invalid_target"})})
        ann = caller("ann")
        for _ in range(10):
            with pytest.raises(NotAllowedError, match="400 invalid_target; nothing was sent to the server"):
                await here.call(caller=ann)
        assert authorization_server.counts()["token"] == before + 1
        with pytest.raises(NotAllowedError, match="this call has none"):
            await here.call(caller=ANN)
    assert protected_server.seen("tools/call") == []


async def test_an_issuer_that_is_down_fails_new_callers_and_nobody_else(
    config, tmp_path, authorization_server, protected_server, caller
):
    authorization_server.switch(expires_s=4)
    async with desk(config, tmp_path) as here:
        ann = caller("ann", exp=4_000_000_000)
        first = await here.call(caller=ann)
        authorization_server.switch(down=["token"])
        with pytest.raises(ServerUnavailableError, match="the issuer of notes failed: it answered 503") as failed:
            await here.call(caller=caller("bob"))
        assert failed.value.code == "server_unavailable"
        assert (await here.call(caller=ann))["jti"] == first["jti"]
        authorization_server.switch(down=[], expires_s=600)

        async def renewed():
            return (await here.call(caller=ann))["jti"] != first["jti"]

        await eventually(renewed, WAIT_S)
    assert {seen["status"] for seen in protected_server.seen("tools/call")} == {200}


async def test_an_issuer_that_gives_back_the_callers_token_gets_nothing_forwarded(
    config, tmp_path, authorization_server, protected_server, caller
):
    ann = caller("ann")
    async with desk(config, tmp_path) as here:
        body = {"access_token": ann.token, "token_type": "Bearer", "expires_in": 600}
        authorization_server.switch(answers={"token": (200, body)})
        with pytest.raises(NotAllowedError, match="which is never forwarded"):
            await here.call(caller=ann)
    assert jti(ann.token) not in {seen["jti"] for seen in protected_server.seen()}


async def test_a_server_cannot_name_the_issuer_that_gets_the_callers_token(
    config, tmp_path, authorization_server, protected_server, caller
):
    protected_server.switch(
        metadata={"authorization_servers": ["https://attacker.example"]},
        resource_metadata="https://attacker.example/metadata",
    )
    ann = caller("ann")
    async with desk(config, tmp_path) as here:
        await here.call(caller=ann)
        protected_server.reject_known_tokens()
        assert (await here.call(caller=ann))["sub"] == "ann"
    assert exchanges(authorization_server) == 2


async def test_a_token_for_another_audience_is_refused_without_a_storm_of_exchanges(
    config, tmp_path, authorization_server, caller
):
    async with desk(config, tmp_path) as here:
        authorization_server.switch(audience="https://other.example")
        ann = caller("ann", aud=GATEWAY)
        for _ in range(10):
            with pytest.raises(ServerUnavailableError, match="refuses the token that its issuer gave"):
                await here.call(caller=ann)
    assert exchanges(authorization_server) <= 2


@pytest.mark.guarantee("secret:nowhere")
async def test_no_callers_token_is_in_the_store_the_audit_log_or_an_error(
    config, tmp_path, authorization_server, caller, capfd, caplog
):
    ann = caller("ann")
    assert ann.token not in repr(ann)
    assert ann == replace(ann, token=None), "whoever has another token is the same caller"
    async with desk(config, tmp_path, audit=str(tmp_path / "audit.jsonl")) as here:
        await here.scout.call_tool("notes__whoami", {}, caller=replace(ann, tenant="local"))
        authorization_server.switch(down=["*"])
        with pytest.raises(ServerUnavailableError) as failed:
            await here.call(caller=caller("bob"))
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()).decode("latin-1")
    assert '"user":"ann"' in everything.replace(" ", "")
    for text in (everything, "".join(capfd.readouterr()), caplog.text, str(failed.value)):
        assert "eyJ" not in text
        assert "hush" not in text


async def test_tokens_are_given_on_behalf_of_callers(config, tmp_path, authorization_server, protected_server, caller):
    oauth = replace(config.oauth, grant_type="on_behalf_of", scopes=(f"{config.url}/.default",))
    async with desk(replace(config, oauth=oauth), tmp_path) as here:
        await until(lambda: here.scout.servers.statuses()[0].state == "ready")
        for user in ("ann", "bob"):
            claims = await here.call(caller=caller(user))
            assert (claims["sub"], claims["aud"], claims["act"]) == (user, config.url, {"sub": "gateway"})
    assert exchanges(authorization_server) == 0


async def test_without_an_issuer_the_server_is_down_and_says_what_to_set(config, tmp_path):
    unnamed = replace(config, oauth=replace(config.oauth, issuer=None))
    async with desk(unnamed, tmp_path) as here:
        (status,) = here.scout.servers.statuses()
        assert (status.state, "no issuer exchanges tokens for notes" in status.detail) == ("failed", True)
        assert "TOOLSCOUT_AUTH_ISSUER" in status.hint
