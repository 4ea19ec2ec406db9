"""Toolscout registers a client once for each server, issuer and callback, again where the issuer has forgotten it."""

from dataclasses import replace

import pytest

from guarantees import guarantee
from sign_ins import REDIRECT, consent, desk, protected, ready
from teams import ANN, BOB, Visitor, team
from toolscout.config import Config
from toolscout.errors import ServerUnavailableError
from toolscout.models import Scope
from toolscout.scout import registered_clients

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server)


def registered(issuer):
    return issuer.counts().get("register", 0)


async def test_users_of_a_gateway_share_one_client_however_often_they_begin(config, tmp_path, authorization_server):
    async with team(replace(config, per_user=True), tmp_path) as here, Visitor(here) as ann, Visitor(here) as bob:
        keys = [await here.key(caller) for caller in (ANN, BOB)]
        for _ in range(3):
            await ann.begin(keys[0])
        for visitor, key in zip((ann, bob), keys, strict=True):
            await visitor.sign_in(key)
        clients = {account.client["client_id"] for account in await here.accounts.stored.find_all()}
    assert len(clients) == registered(authorization_server) == 1


async def test_a_client_is_kept_for_its_own_server_issuer_and_callback(config, tmp_path, authorization_server):
    async with desk(config, tmp_path) as here:
        clients = here.accounts.clients
        await here.sign_in()
        await here.accounts.begin("notes", config, Scope(), f"{REDIRECT}/else")
        assert registered(authorization_server) == 2
        assert await clients.find("notes", config.oauth.issuer, REDIRECT) is not None
        for other in (("other", config.oauth.issuer, REDIRECT), ("notes", "https://other.example", REDIRECT)):
            assert await clients.find(*other) is None
        await (await here.scout.connect(Config(servers=()))).settled()
        assert await clients.find("notes", config.oauth.issuer, REDIRECT) is None


async def test_a_client_that_the_issuer_has_forgotten_is_registered_again(
    config, tmp_path, authorization_server, protected_server, monkeypatch
):
    async with desk(config, tmp_path) as here:
        await ready(here)
        await here.call()
        authorization_server.reset()
        protected_server.reject_known_tokens()
        authorization_server.switch(approve="ann")
        with pytest.raises(ServerUnavailableError, match="needs you to sign in"):
            await here.call()
        await here.sign_in()
        assert registered(authorization_server) == 1, "its account was refused"
        authorization_server.reset()
        authorization_server.switch(approve="ann")
        for _ in range(2):
            with pytest.raises(KeyError, match="location"):
                await here.sign_in()
        assert registered(authorization_server) == 0
        monkeypatch.setattr(registered_clients, "DOUBTED_S", 0.0)
        await here.sign_in()
        await here.sign_in()
    assert registered(authorization_server) == 1


async def test_a_sign_in_that_ends_speaks_for_no_other_client(config, tmp_path, authorization_server, monkeypatch):
    async with desk(config, tmp_path) as here:
        place = "notes", config.oauth.issuer, REDIRECT
        first = await here.accounts.begin("notes", config, Scope(), REDIRECT)
        monkeypatch.setattr(registered_clients, "DOUBTED_S", 0.0)
        await here.accounts.begin("notes", config, Scope(), REDIRECT)
        assert registered(authorization_server) == 2
        await here.accounts.finish(config, first, await consent(first.link))
        assert await here.accounts.clients.find(*place) is None, "nobody has signed in with the second one"
        await here.sign_in()
        assert await here.accounts.clients.find(*place) is not None
