"""Tokens are renewed before they end and once after a 401, by one request at a time, and failures are typed."""

import asyncio
from dataclasses import replace

import pytest

from downstreams import WAIT_S, until
from guarantees import guarantee
from sign_ins import desk, protected, ready, refreshes
from toolscout.errors import ServerUnavailableError, SignInRequiredError
from toolscout.token_cipher import new_key
from waiting import eventually

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server, concurrency=100)


async def test_a_hundred_calls_whose_token_was_rejected_renew_it_once(
    config, tmp_path, authorization_server, protected_server
):
    async with desk(config, tmp_path) as here:
        await ready(here)
        before = (await here.call())["jti"]
        protected_server.reject_known_tokens()
        answers = await asyncio.gather(*(here.call() for _ in range(100)))
    assert {answer["sub"] for answer in answers} == {"ann"}
    assert before not in {answer["jti"] for answer in answers}
    assert refreshes(authorization_server) == 1


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_two_replicas_renew_a_token_once(
    config, tmp_path, authorization_server, protected_server, engine, request
):
    shared = {}
    if engine == "postgres":
        shared = {"store": request.getfixturevalue("database")(), "token_key": new_key()}
    async with desk(config, tmp_path, **shared) as one, desk(config, tmp_path, **shared) as other:
        await ready(one)
        await until(lambda: other.scout.servers.statuses()[0].state == "ready")
        await asyncio.gather(one.call(), other.call())
        protected_server.reject_known_tokens()
        answers = await asyncio.gather(*(here.call() for here in [one, other] * 10))
    assert len({answer["jti"] for answer in answers}) == 1
    assert refreshes(authorization_server) == 1


async def test_refresh_tokens_that_rotate_are_followed_one_after_the_other_and_over_a_restart(
    config, tmp_path, authorization_server, protected_server
):
    """An issuer that gets an old one again ends the sign-in."""
    used = set()
    for start in range(2):
        async with desk(config, tmp_path) as here:
            await (until_ready(here) if start else ready(here))
            for _ in range(4):
                assert (await here.call())["sub"] == "ann"
                protected_server.reject_known_tokens()
                (account,) = await here.accounts.stored.find_all()
                used.add(account.refresh_token)
    assert len(used) == 1 + refreshes(authorization_server) == 8
    assert [grant["revoked"] for grant in authorization_server.grants()] == [False]


async def until_ready(here):
    await until(lambda: here.scout.servers.statuses()[0].state == "ready")


async def test_a_token_is_renewed_before_it_ends_so_that_no_call_is_refused(
    config, tmp_path, authorization_server, protected_server
):
    authorization_server.switch(expires_s=4)
    async with desk(config, tmp_path) as here:
        await ready(here)
        protected_server.reset()
        first = (await here.call())["jti"]

        async def renewed():
            return (await here.call())["jti"] != first

        await eventually(renewed, WAIT_S)
    assert refreshes(authorization_server) >= 1
    assert {seen["status"] for seen in protected_server.seen("tools/call")} == {200}


async def test_a_token_that_ends_at_once_does_not_renew_without_end(config, tmp_path, authorization_server):
    authorization_server.switch(expires_s=0)
    async with desk(config, tmp_path) as here:
        await here.sign_in()
        for _ in range(10):
            with pytest.raises((SignInRequiredError, ServerUnavailableError)):
                await here.call()
    assert refreshes(authorization_server) < 10


async def test_an_issuer_that_is_down_gives_a_typed_error_and_the_account_stays(
    config, tmp_path, authorization_server, protected_server
):
    async with desk(config, tmp_path) as here:
        await ready(here)
        await here.call()
        protected_server.reject_known_tokens()
        authorization_server.switch(down=["token"])
        with pytest.raises(ServerUnavailableError, match="its issuer does not answer") as failed:
            await here.call()
        assert failed.value.code == "server_unavailable"
        authorization_server.switch(down=[])

        async def works():
            try:
                return (await here.call())["sub"] == "ann"
            except ServerUnavailableError:
                return False

        await eventually(works, WAIT_S)


async def test_a_refresh_token_that_is_refused_ends_the_sign_in_and_says_so(
    config, tmp_path, authorization_server, protected_server
):
    async with desk(config, tmp_path) as here:
        await ready(here)
        await here.call()
        protected_server.reject_known_tokens()
        authorization_server.switch(refuse_refresh=True)
        for _ in range(5):
            with pytest.raises(SignInRequiredError) as failed:
                await here.call()
        assert failed.value.hint == "run `toolscout login notes`"
        assert refreshes(authorization_server) == 1
        await until(lambda: here.scout.servers.statuses()[0].state == "needs_login")
        authorization_server.switch(refuse_refresh=False)
        await ready(here)
        assert (await here.call())["sub"] == "ann"


async def test_a_lost_race_for_the_refresh_token_is_repaired(config, tmp_path, authorization_server, protected_server):
    async with desk(config, tmp_path) as here, desk(config, tmp_path) as other:
        await ready(here)
        await here.call()
        stored = other.accounts.stored
        account = await stored.find_all()
        await here.sign_in()  # as another process does, without telling this one
        (new,) = await stored.find_all()
        assert new.access_token != account[0].access_token
        protected_server.reject_known_tokens()
        assert (await here.call())["sub"] == "ann"


async def test_a_token_for_another_audience_is_refused_without_a_storm_of_renewals(
    config, tmp_path, authorization_server
):
    async with desk(config, tmp_path) as here:
        authorization_server.switch(audience="https://other.example")
        await here.sign_in()
        (status,) = here.scout.servers.statuses()
        for _ in range(10):
            with pytest.raises(SignInRequiredError):
                await here.call()
        assert status.state == "needs_login"
    assert refreshes(authorization_server) <= 2


@pytest.mark.parametrize("skew_s", [3_600, -3_600])
async def test_the_clock_of_the_issuer_decides_nothing_here(
    config, tmp_path, authorization_server, protected_server, skew_s
):
    authorization_server.switch(clock_skew_s=skew_s)
    protected_server.switch(leeway_s=7_200)
    async with desk(config, tmp_path) as here:
        await ready(here)
        for _ in range(5):
            assert (await here.call())["sub"] == "ann"
    assert refreshes(authorization_server) == 0


async def test_a_server_that_wants_more_leads_to_a_sign_in_that_asks_for_all(config, tmp_path, authorization_server):
    async with desk(config, tmp_path) as here:
        await ready(here)
        with pytest.raises(SignInRequiredError, match="it wants you to allow more"):
            await here.call("add_note")
        assert (await here.call())["scope"] == "tools:read"
        await here.sign_in()

        async def allowed():
            return (await here.call())["scope"] == "tools:read tools:write"

        await eventually(allowed, WAIT_S)
        assert await here.call("add_note") == {"notes": 1}
    assert [grant["scope"] for grant in authorization_server.grants()] == ["tools:read", "tools:read tools:write"]


async def test_signing_out_in_another_process_ends_the_calls_here(config, tmp_path, authorization_server):
    async with desk(config, tmp_path) as here, desk(config, tmp_path) as other:
        await ready(here)
        await here.call()
        accounts = other.accounts
        (account,) = await accounts.stored.find_all()
        assert await accounts.sign_out(account, config)

        async def refused():
            try:
                await here.call()
            except SignInRequiredError:
                return True
            return False

        await eventually(refused, WAIT_S)
    assert authorization_server.grants()[0]["revoked"]


async def test_a_server_without_an_account_keeps_the_tools_that_it_listed(config, tmp_path, authorization_server):
    async with desk(config, tmp_path, unavailable_s=0.0) as here:
        await ready(here)

        async def listed():
            return (await here.scout.overview()).total == 3

        await eventually(listed, WAIT_S)
    async with desk(config, tmp_path, unavailable_s=0.0) as here:
        (account,) = await here.accounts.stored.find_all()
        await here.accounts.sign_out(account, config)
    async with desk(config, tmp_path, unavailable_s=0.0) as here:
        assert here.scout.servers.statuses()[0].state == "needs_login"
        answer = await here.scout.search_tools("count notes")
        assert {match.available for match in answer} == {False}
        assert {match.to_dict()["hint"] for match in answer} == {"run `toolscout login notes`"}
        assert "notes__count_notes" in [match.tool.key for match in answer]
        with pytest.raises(SignInRequiredError):
            await here.scout.call_tool("notes__whoami", {})


async def test_a_token_is_never_sent_to_another_address_than_it_was_given_for(
    config, tmp_path, authorization_server, protected_server
):
    from protected_server import running_protected_server

    async with desk(config, tmp_path) as here:
        await ready(here)
    with running_protected_server(authorization_server.url) as second:
        async with desk(replace(config, url=second.url), tmp_path) as here:
            assert here.scout.servers.statuses()[0].state == "needs_login"
        assert {seen["sub"] for seen in second.seen()} <= {None, ""}
