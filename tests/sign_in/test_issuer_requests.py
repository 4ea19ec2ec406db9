"""What requests to an issuer carry, where they go, and how long a sign-in may take."""

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from downstreams import until
from guarantees import guarantee
from sign_ins import REDIRECT, consent, desk, protected, ready, refreshes
from toolscout.errors import SignInError
from toolscout.models import Scope

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server)


def query_of(link):
    return parse_qs(urlsplit(link).query)


async def test_every_request_for_a_token_names_the_server_that_it_is_for(
    config, tmp_path, authorization_server, protected_server
):
    authorization_server.switch(require_resource=True)
    async with desk(config, tmp_path) as here:
        await ready(here)
        await here.call()
        protected_server.reject_known_tokens()
        assert (await here.call())["aud"] == config.url
    assert refreshes(authorization_server) == 1


async def test_a_refresh_token_is_asked_for_with_consent_where_the_issuer_offers_it_that_way(
    config, tmp_path, authorization_server
):
    async with desk(config, tmp_path) as here:
        plain = query_of((await here.accounts.begin("notes", config, Scope(), REDIRECT)).link)
        authorization_server.switch(metadata={"scopes_supported": ["tools:read", "offline_access"]})
        offline = query_of((await here.accounts.begin("notes", config, Scope(), REDIRECT)).link)
    assert (plain["scope"], plain.get("prompt")) == (["tools:read"], None)
    assert (offline["scope"], offline["prompt"]) == (["tools:read offline_access"], ["consent"])


@pytest.mark.guarantee("egress:ssrf")
@pytest.mark.parametrize("endpoint", ["metadata", "register", "token"])
async def test_an_issuer_that_redirects_is_not_followed(config, tmp_path, authorization_server, endpoint):
    authorization_server.switch(redirect={endpoint: f"{authorization_server.url}/device"})
    async with desk(config, tmp_path) as here:
        with pytest.raises(SignInError):
            await here.sign_in()
        assert await here.accounts.stored.find_all() == []
    assert authorization_server.counts()[endpoint] >= 1
    assert "device" not in authorization_server.counts()


@pytest.mark.guarantee("egress:ssrf")
async def test_a_server_whose_metadata_redirects_is_not_followed(
    config, tmp_path, authorization_server, protected_server
):
    protected_server.switch(metadata_redirect=f"{authorization_server.url}/device")
    async with desk(config, tmp_path) as here:
        await here.sign_in()
    assert "device" not in authorization_server.counts()


async def test_a_sign_in_ends_after_ten_minutes(config, tmp_path, authorization_server):
    async with desk(config, tmp_path) as here:
        pending = await here.accounts.begin("notes", config, Scope(), REDIRECT)
        answer = await consent(pending.link)
        late = replace(pending, began_at=pending.began_at - 601)
        with pytest.raises(SignInError, match="took too long"):
            await here.accounts.finish(config, late, answer)
        assert "token" not in authorization_server.counts()
        pending = await here.accounts.begin("notes", config, Scope(), REDIRECT)
        just = replace(pending, began_at=pending.began_at - 570)
        assert (await here.accounts.finish(config, just, await consent(pending.link))).access_token


async def test_a_sign_in_that_began_for_another_address_does_not_end(config, tmp_path, authorization_server):
    async with desk(config, tmp_path) as here:
        pending = await here.accounts.begin("notes", config, Scope(), REDIRECT)
        answer = await consent(pending.link)
        moved = replace(config, url=f"{config.url}/elsewhere")
        with pytest.raises(SignInError, match="the address of notes has changed"):
            await here.accounts.finish(moved, pending, answer)
    assert "token" not in authorization_server.counts()


@pytest.mark.guarantee("secret:nowhere")
async def test_a_client_secret_stays_in_the_config_and_can_be_changed_there(
    tmp_path, authorization_server, protected_server
):
    def known(secret):
        authorization_server.register_client("by-hand", REDIRECT, secret=secret)
        oauth = {"client_id": "by-hand", "client_secret": secret}
        return protected(protected_server, authorization_server, oauth=oauth)

    authorization_server.switch(approve="ann")
    async with desk(known("first-secret"), tmp_path) as here:
        await ready(here)
        await here.call()
        (account,) = await here.accounts.stored.find_all()
        assert "first-secret" not in str(dict(account.client))
    async with desk(known("second-secret"), tmp_path) as here:
        await until(lambda: here.scout.servers.statuses()[0].state == "ready")
        protected_server.reject_known_tokens()
        assert (await here.call())["sub"] == "ann"
    assert refreshes(authorization_server) == 1
