"""Accounts go with their user and with their server, and their tokens are revoked."""

from dataclasses import replace

import pytest

from downstreams import WAIT_S, until
from guarantees import guarantee
from sign_ins import Desk, desk, protected, ready
from toolscout.config import Config
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
        await until(lambda: revoked(authorization_server) == [True, True])
        assert await left(here) == []
