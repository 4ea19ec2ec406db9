"""Accounts go with their user and with their server, and their tokens are revoked."""

import asyncio
from dataclasses import replace

import pytest

from downstreams import WAIT_S, until
from guarantees import guarantee
from sign_ins import REDIRECT, Desk, consent, desk, protected, ready
from toolscout.config import Config, ServerConfig
from toolscout.errors import SignInError
from toolscout.models import Caller, Scope
from waiting import eventually

pytestmark = [pytest.mark.process, guarantee("signin:bound")]

ANN, BOB = Scope(tenant="acme", owner="ann"), Scope(tenant="acme", owner="bob")


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server, tenants=("acme",))


@pytest.fixture
def for_each_user(config):
    return replace(config, per_user=True)


def revoked(issuer):
    return [grant["revoked"] for grant in issuer.grants()]


async def left(here: Desk) -> list[Scope]:
    return [account.scope for account in await here.accounts.stored.find_all()]


async def edit(here: Desk, *servers):
    """Follow an edit of the config, until it is done."""
    await (await here.scout.connect(Config(servers=servers))).settled()


async def test_the_account_that_all_callers_share_is_used_for_each_tenant(config, tmp_path, protected_server):
    async with desk(replace(config, tenants="all"), tmp_path) as here:
        await ready(here)
        for caller in (Caller(tenant="acme", user="ann"), Caller(tenant="zeta", user="bob"), Caller()):
            assert (await here.call(caller=caller))["sub"] == "ann"
    calls = protected_server.seen("tools/call")
    assert len({seen["jti"] for seen in calls}) == 1


async def test_a_shared_account_goes_with_its_server_whatever_its_tenants_are(config, tmp_path, authorization_server):
    async with desk(config, tmp_path) as here:
        await ready(here)
        other = replace(config, title="other")
        await edit(here, config, other)
        assert await left(here) == [Scope()]
        await edit(here, replace(config, tenants=("zeta",)), other)
        assert await left(here) == [Scope()]
        await edit(here, other)
        assert await left(here) == []
    assert revoked(authorization_server) == [True]


async def test_an_account_stays_while_its_server_is_switched_off(for_each_user, tmp_path, authorization_server):
    async with desk(for_each_user, tmp_path) as here:
        await here.sign_in(ANN)
        assert here.scout.sync is not None
        await here.scout.sync.list_user("notes", ANN)
        await here.scout.sync.settled()
        await edit(here, replace(for_each_user, enabled=False))
        assert await left(here) == [ANN]
        await edit(here, for_each_user)
        assert (await here.call(caller=Caller(tenant="acme", user="ann")))["sub"] == "ann"
    assert revoked(authorization_server) == [False]


async def test_removing_a_user_revokes_their_tokens_and_nobody_elses(for_each_user, tmp_path, authorization_server):
    async with desk(for_each_user, tmp_path) as here:
        for scope in (ANN, BOB):
            await here.sign_in(scope)
        await here.scout.remove_user("ann", caller=Caller(tenant="acme"))
        assert await left(here) == [BOB]
    assert revoked(authorization_server) == [True, False]


@pytest.mark.parametrize("removed", ["user", "server", "account"])
async def test_nothing_comes_of_a_code_that_is_redeemed_while_its_user_or_server_is_removed(
    for_each_user, tmp_path, authorization_server, removed
):
    async with desk(for_each_user, tmp_path) as here:
        pending = await here.accounts.begin("notes", for_each_user, ANN, REDIRECT)
        answer = await consent(pending.link)
        authorization_server.switch(late=["token"])
        end = asyncio.create_task(here.accounts.finish(for_each_user, pending, answer))
        await until(lambda: authorization_server.counts().get("token:authorization_code", 0) == 1)
        if removed == "user":
            await here.scout.remove_user("ann", caller=Caller(tenant="acme"))
        elif removed == "server":
            await edit(here)
        else:
            await here.accounts.forget(ANN, "notes", for_each_user)
        authorization_server.switch(late=[])
        with pytest.raises(SignInError, match="was removed before it ended"):
            await end
        assert await left(here) == []
    assert revoked(authorization_server) == [True]


async def test_the_accounts_of_all_users_go_with_their_server(for_each_user, tmp_path, authorization_server):
    async with desk(for_each_user, tmp_path) as here:
        for scope in (ANN, BOB):
            await here.sign_in(scope)
    async with desk(for_each_user, tmp_path) as here:

        async def listed():
            totals = [await here.scout.overview(caller=Caller(tenant="acme", user=name)) for name in ("ann", "bob")]
            return [overview.total for overview in totals] == [3, 3]

        await eventually(listed, WAIT_S)
        await edit(here)
        assert await left(here) == []
    assert revoked(authorization_server) == [True, True]


async def test_the_catalogue_does_not_wait_for_an_issuer_when_a_server_with_users_goes(
    for_each_user, tmp_path, authorization_server
):
    async with desk(for_each_user, tmp_path) as here:
        for scope in (ANN, BOB):
            await here.sign_in(scope)
        authorization_server.switch(late=["revoke"])
        async with asyncio.timeout(WAIT_S):
            await edit(here)
        assert await left(here) == []
        await until(lambda: authorization_server.counts().get("revoke", 0) == 2)
        authorization_server.switch(late=[])
    assert revoked(authorization_server) == [True, True]


async def test_an_account_goes_with_a_server_that_was_switched_off_before(config, tmp_path, authorization_server):
    async with desk(config, tmp_path) as here:
        await ready(here)
        await edit(here, replace(config, enabled=False))
        assert await left(here) == [Scope()]
        await edit(here)
        assert await left(here) == []
    assert revoked(authorization_server) == [True]


@pytest.mark.parametrize("other", [{"headers": {"Authorization": "Bearer key"}}, {"transport": "stdio", "url": ""}])
async def test_an_account_goes_when_its_server_is_replaced_by_one_that_nobody_signs_in_to(
    config, tmp_path, authorization_server, other
):
    async with desk(config, tmp_path) as here:
        await ready(here)
        await edit(here, replace(config, **other))
        assert await left(here) == []
    assert revoked(authorization_server) == [True]


async def test_a_mistake_in_a_config_file_deletes_no_account(config, tmp_path, authorization_server):
    config = replace(config, source="mcp.json")
    broken = ServerConfig(title="notes", transport="stdio", source="mcp.json", problem="a variable is missing")
    async with desk(config, tmp_path) as here:
        await ready(here)
        for title in ("notes", "mcp.json"):
            await edit(here, replace(broken, title=title))
            assert await left(here) == [Scope()]
        await edit(here)
        assert await left(here) == []
    assert revoked(authorization_server) == [True]
