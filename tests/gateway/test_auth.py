"""Authentication over HTTP, with tokens of a real issuer and with API keys."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from guarantees import guarantee
from guarded import Clock, guarded
from issuer import AUDIENCE, KEYS, running_issuer
from scripted import Scripted
from toolscout.errors import SettingError
from toolscout.gateway.auth.authentication import METADATA, authentication_for
from toolscout.gateway.auth.jwks import PAUSE_S, TTL_S
from toolscout.settings import Settings

WHERE = 'resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"'
FAR = 4_000


@pytest.fixture(scope="module")
def issuer():
    """Return a real issuer."""
    with running_issuer() as running:
        yield running


@pytest.fixture
def tools():
    """Return a server with one tool."""
    server = Scripted("demo")
    server.tool("echo", description="Say back what was said", annotations={"readOnlyHint": True})
    return server


def shared_secret(issuer):
    """Sign with the public key as if it were a secret that both sides know."""
    unsigned = issuer.forged({"alg": "HS256", "typ": "JWT", "kid": issuer.kid}).rsplit(".", 1)[0]
    signature = hmac.new(issuer.public_pem(), unsigned.encode(), hashlib.sha256).digest()
    return issuer.forged({"alg": "HS256", "typ": "JWT", "kid": issuer.kid}, signature)


def strangers_key():
    """Make a key that the issuer never had."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


BAD = {
    "another audience": lambda issuer: issuer.token(aud="https://other.example.com/mcp"),
    "other audiences": lambda issuer: issuer.token(aud=["https://a.example", "https://b.example"]),
    "no audience": lambda issuer: issuer.token(aud=None),
    "another issuer": lambda issuer: issuer.token(iss="https://evil.example"),
    "the issuer with a slash": lambda issuer: issuer.token(iss=issuer.url + "/"),
    "no issuer": lambda issuer: issuer.token(iss=None),
    "expired": lambda issuer: issuer.token(exp=int(time.time()) - FAR),
    "no expiry": lambda issuer: issuer.token(exp=None),
    "an expiry that is no number": lambda issuer: issuer.forged({"alg": "RS256", "kid": issuer.kid}, exp="never"),
    "not yet": lambda issuer: issuer.token(nbf=int(time.time()) + FAR),
    "no user": lambda issuer: issuer.token(sub=None),
    "a user that is no text": lambda issuer: issuer.token(sub="  "),
    "no tenant": lambda issuer: issuer.token(tenant=None),
    "a tenant that is no text": lambda issuer: issuer.token(tenant=["acme"]),
    "alg none": lambda issuer: issuer.forged({"alg": "none"}),
    "alg nOnE": lambda issuer: issuer.forged({"alg": "nOnE", "kid": issuer.kid}),
    "no alg": lambda issuer: issuer.forged({"kid": issuer.kid}),
    "an alg that is no text": lambda issuer: issuer.forged({"alg": ["RS256"], "kid": issuer.kid}),
    "the public key as a secret": shared_secret,
    "unsigned": lambda issuer: issuer.forged({"alg": "RS256", "kid": issuer.kid}),
    "half a signature": lambda issuer: issuer.token()[:-40],
    "another key under the same name": lambda issuer: issuer.token(key=strangers_key()),
    "a key that it brings along": lambda issuer: issuer.token(
        key=strangers_key(), headers={"kid": "mine", "jwk": issuer.published()["keys"][0]}
    ),
    "a key from elsewhere": lambda issuer: issuer.token(
        key=strangers_key(), headers={"kid": "mine", "jku": issuer.url + "/evil", "x5u": issuer.url + "/evil"}
    ),
    "a kid that is no text": lambda issuer: issuer.forged({"alg": "RS256", "kid": {"a": 1}}, b"x"),
    "a word": lambda _: "letmein",
    "dots": lambda _: "..",
    "more dots": lambda _: "a.b.c.d",
    "letters beyond ASCII": lambda _: "caf\xe9",
    "a very long one": lambda _: "a" * 20_000 + ".b.c",
    "a deep header": lambda issuer: issuer.forged({"alg": "RS256", "x": json.loads("[" * 500 + "]" * 500)}),
    "a key without its form": lambda _: "tsk_",
    "a key with a broken form": lambda _: "tsk_aaaaaaaaaa_short",
}


@guarantee("auth:token")
async def test_a_token_with_anything_wrong_is_refused_without_reading_the_store(issuer, tools):
    async with guarded({"acme": [tools]}, issuer=issuer, reindex_interval_s=60) as served:
        assert (await served.ask(issuer.token(), "tools/list")).status_code == 200
        served.store.used.clear()
        for wrong, make in BAD.items():
            token = make(issuer)
            raw = {b"Authorization": f"Bearer {token}".encode("latin-1")}
            response = await served.http.post(served.url, content=b"{}", headers=raw)
            assert response.status_code == 401, wrong
            header = response.headers["www-authenticate"]
            assert header.startswith("Bearer ") and WHERE in header, wrong
            assert token not in response.text, wrong
        assert served.store.used == []
        assert "/evil" not in issuer.asked
        assert not tools.calls


@guarantee("auth:token")
async def test_no_header_another_scheme_or_a_token_in_the_query_is_refused(issuer, tools):
    async with guarded({"acme": [tools]}, issuer=issuer, reindex_interval_s=60) as served:
        served.store.used.clear()
        good = issuer.token()
        for path, headers in [
            ("", {}),
            ("", {"Authorization": good}),
            ("", {"Authorization": "Bearer"}),
            ("", {"Authorization": f"Basic {good}"}),
            ("", {"Authorization": f"Token {good}"}),
            ("", {"X-Api-Key": good}),
            ("", {"Cookie": f"access_token={good}"}),
            (f"?access_token={good}", {}),
            (f"?token={good}", {"Mcp-Session-Id": "x"}),
        ]:
            for method in ("POST", "GET", "DELETE", "PUT"):
                response = await served.http.request(method, served.url + path, headers=headers)
                assert response.status_code == 401, (method, path, headers)
                assert WHERE in response.headers["www-authenticate"]
        assert served.store.used == []
        assert (await served.http.get(served.url.removesuffix("/mcp") + "/health")).status_code == 200


@guarantee("auth:token")
async def test_a_valid_token_identifies_its_tenant_user_and_groups(issuer, tools):
    async with guarded({"acme": [tools]}, issuer=issuer, surface="all") as served:
        assert await served.names(issuer.token()) == ["demo__echo"]
        assert await served.names(issuer.token(tenant="other")) == []
        assert await served.names(issuer.token(aud=["https://x.example", AUDIENCE])) == ["demo__echo"]
        result = await served.call(issuer.token(), "demo__echo")
        assert not result.get("isError")


@guarantee("auth:token")
async def test_the_metadata_says_where_tokens_come_from(issuer):
    async with guarded(issuer=issuer, auth_scope="tools") as served:
        origin = served.url.removesuffix("/mcp")
        for path in (METADATA, f"{METADATA}/mcp"):
            document = (await served.http.get(origin + path)).json()
            assert document["resource"] == AUDIENCE
            assert document["authorization_servers"] == [issuer.url]
            assert document["scopes_supported"] == ["tools"]
            assert document["bearer_methods_supported"] == ["header"]
    async with guarded() as served:
        assert (await served.http.get(served.url.removesuffix("/mcp") + METADATA)).status_code == 404
        refused = await served.ask("x", "tools/list")
        assert refused.status_code == 401
        assert "resource_metadata" not in refused.headers["www-authenticate"]


@guarantee("auth:token")
async def test_a_missing_scope_is_reported_as_insufficient_scope(issuer):
    async with guarded(issuer=issuer, auth_scope="tools") as served:
        for token in (issuer.token(), issuer.token(scope="other toolsmith"), await served.key("acme", scopes=["x"])):
            refused = await served.ask(token, "tools/list")
            assert refused.status_code == 403
            assert 'error="insufficient_scope"' in refused.headers["www-authenticate"]
            assert WHERE in refused.headers["www-authenticate"]
        for token in (issuer.token(scope="other tools"), await served.key("acme", scopes=["tools"])):
            assert (await served.ask(token, "tools/list")).status_code == 200


@guarantee("auth:token")
async def test_a_new_key_of_the_issuer_is_found_and_an_old_one_goes(issuer):
    async with guarded(issuer=issuer) as served:
        issuer.rotate("RS256")
        served.clock.now += PAUSE_S + 1
        before = issuer.token()
        assert (await served.ask(before, "tools/list")).status_code == 200
        issuer.rotate("ES256")
        after = issuer.token()
        assert (await served.ask(after, "tools/list")).status_code == 401  # it was asked a moment ago
        served.clock.now += PAUSE_S + 1
        assert (await served.ask(after, "tools/list")).status_code == 200
        assert (await served.ask(before, "tools/list")).status_code == 401


@guarantee("auth:token")
async def test_cached_keys_verify_tokens_while_the_issuer_is_down(issuer):
    async with guarded(issuer=issuer) as served:
        valid = issuer.token()
        assert (await served.ask(valid, "tools/list")).status_code == 200
        issuer.down = True
        try:
            for _ in range(3):
                served.clock.now += TTL_S + 1
                assert (await served.ask(valid, "tools/list")).status_code == 200
            stranger = issuer.token(headers={"kid": "unheard-of"})
            assert (await served.ask(stranger, "tools/list")).status_code == 401
        finally:
            issuer.down = False
        issuer.rotate("ES256", keep=True)
        served.clock.now += PAUSE_S + 1
        assert (await served.ask(issuer.token(), "tools/list")).status_code == 200


@guarantee("auth:token")
async def test_no_token_is_accepted_before_the_issuer_answers(issuer):
    async with guarded(issuer=issuer) as served:
        issuer.down = True
        try:
            assert (await served.ask(issuer.token(), "tools/list")).status_code == 401
        finally:
            issuer.down = False
        served.clock.now += PAUSE_S + 1
        assert (await served.ask(issuer.token(), "tools/list")).status_code == 200


@guarantee("auth:token")
async def test_unknown_keys_do_not_make_us_hammer_the_issuer(issuer):
    async with guarded(issuer=issuer) as served:
        assert (await served.ask(issuer.token(), "tools/list")).status_code == 200
        served.clock.now += PAUSE_S + 1
        issuer.asked.clear()
        tokens = [issuer.token(headers={"kid": f"made-up-{number}"}) for number in range(60)]
        answers = await asyncio.gather(*(served.ask(token, "tools/list") for token in tokens))
        assert {answer.status_code for answer in answers} == {401}
        assert issuer.asked == [KEYS]


@guarantee("auth:token")
async def test_a_key_is_refused_when_it_is_wrong_expired_or_revoked(issuer):
    async with guarded() as served:
        good = await served.key("acme", "ann")
        number = good.split("_")[1]
        assert (await served.ask(good, "tools/list")).status_code == 200
        other = await served.key("acme", "bob")
        swapped = "_".join([*good.split("_")[:2], other.split("_", 2)[2]])
        changed = good[:-1] + ("A" if good[-1] != "A" else "B")
        unknown = "tsk_" + "a" * 10 + "_" + "b" * 43
        expired = await served.key("acme", "cid", expires_at=time.time() - 1)
        for wrong in (swapped, changed, unknown, expired, good + "x", good.upper(), f" {good}"):
            assert (await served.ask(wrong, "tools/list")).status_code == 401
        await served.scout.api_keys.revoke(number)
        served.clock.now += 1.01
        assert (await served.ask(good, "tools/list")).status_code == 401
        assert (await served.ask(other, "tools/list")).status_code == 200


@guarantee("auth:token")
async def test_a_key_that_was_just_looked_up_costs_no_query_for_a_second():
    async with guarded() as served:
        good = await served.key("acme", "ann")
        await served.ask(good, "tools/list")
        served.store.used.clear()
        for _ in range(5):
            assert (await served.ask(good, "server/discover")).status_code == 200
        assert "record" not in served.store.used
        served.clock.now += 1.01
        await served.ask(good, "server/discover")
        assert "record" in served.store.used


@guarantee("access:fails-closed")
async def test_any_failure_of_authentication_denies_access(tools):
    async def broken(_number, _secret):
        raise ZeroDivisionError

    async with guarded({"acme": [tools]}) as served:
        good = await served.key("acme")
        verifier = authentication_for(Settings(), broken).verifier
        assert await verifier.verify_token(good) is None
        assert await verifier.verify_token("x.y.z") is None


async def no_key(_key: str, _secret: str) -> None:
    """Find no API key."""


@guarantee("auth:default")
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"auth_issuer": "https://issuer.example"}, "AUTH_AUDIENCE"),
        ({"auth_issuer": "http://issuer.example", "auth_audience": AUDIENCE}, "AUTH_ISSUER"),
        ({"auth_issuer": "issuer", "auth_audience": AUDIENCE}, "AUTH_ISSUER"),
        ({"auth_issuer": "https://issuer.example", "auth_audience": "toolscout"}, "AUTH_AUDIENCE"),
        (
            {"auth_issuer": "https://i.example", "auth_audience": AUDIENCE, "auth_jwks_url": "http://keys.example"},
            "AUTH_JWKS_URL",
        ),
        ({"auth_issuer": "https://i.example", "auth_audience": AUDIENCE, "auth_algorithms": "HS256"}, "HS256"),
        ({"auth_issuer": "https://i.example", "auth_audience": AUDIENCE, "auth_algorithms": "none"}, "none"),
        ({"auth_issuer": "https://i.example", "auth_audience": AUDIENCE, "auth_algorithms": " "}, "AUTH_ALGORITHMS"),
    ],
)
def test_settings_that_would_let_anyone_in_are_refused(wrong, named):
    with pytest.raises(SettingError, match=named):
        authentication_for(Settings(**wrong), no_key)


@guarantee("auth:token")
async def test_what_is_remembered_of_a_token_ends_with_it_and_with_the_issuers_keys(issuer):
    clock = Clock()
    named = Settings(auth_issuer=issuer.url, auth_audience=AUDIENCE, auth_tenant_claim="tenant")
    verifier = authentication_for(named, no_key, clock=clock).verifier

    async def is_cached(token: str) -> bool:
        """Tell whether a token is answered with the same object twice."""
        return await verifier.verify_token(token) is await verifier.verify_token(token) is not None

    expired = issuer.token(exp=int(time.time()) - 5)  # accepted, as clocks differ by seconds
    assert await verifier.verify_token(expired)
    assert not await is_cached(expired)
    short, long = issuer.token(exp=int(time.time()) + 6), issuer.token()
    first = [await verifier.verify_token(token) for token in (short, long)]
    assert await is_cached(short)
    assert await is_cached(long)
    clock.now += 7
    assert await verifier.verify_token(short) is not first[0]
    assert await verifier.verify_token(long) is first[1]
    issuer.rotate()
    clock.now += PAUSE_S
    assert await verifier.verify_token(issuer.token())
    assert await verifier.verify_token(long) is None
    assert long not in repr(vars(verifier))


@guarantee("auth:token")
async def test_two_authorization_headers_are_refused(tools):
    async with guarded({"acme": [tools]}) as served:
        key = await served.key("acme")
        headers = [("Authorization", f"Bearer {key}"), ("Authorization", f"Bearer {key}")]
        assert (await served.http.post(served.url, content=b"{}", headers=headers)).status_code == 400
        assert await served.names(key)


@guarantee("auth:token")
async def test_a_wrong_secret_does_not_mark_a_key_as_used(tools):
    async with guarded({"acme": [tools]}) as served:
        key = await served.key("acme")
        wrong = key[:-4] + ("aaaa" if not key.endswith("aaaa") else "bbbb")
        assert (await served.ask(wrong, "tools/list")).status_code == 401
        assert [item.last_used_at for item in await served.scout.api_keys.list_all()] == [None]
        served.clock.now += 60
        assert (await served.ask(key, "tools/list")).status_code == 200
        assert [item.last_used_at is None for item in await served.scout.api_keys.list_all()] == [False]


@guarantee("auth:token")
async def test_health_says_nothing_about_the_gateway(tools):
    async with guarded({"acme": [tools]}) as served:
        answer = await served.http.get(served.url.removesuffix("/mcp") + "/health")
    assert answer.json() == {"status": "ok"}
