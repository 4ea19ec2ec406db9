"""A renewal is not lost when its call is cancelled, the store fails or the gateway stops. What was removed stays so."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import replace

import pytest

from downstreams import WAIT_S, until
from guarantees import guarantee
from sign_ins import desk, protected, ready, refreshes, renewing, sign_in_due
from toolscout.errors import ServerUnavailableError, SignInRequiredError
from toolscout.models import Caller
from waiting import eventually

pytestmark = [pytest.mark.process, guarantee("signin:bound")]

ANN = Caller(tenant="acme", user="ann")


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server, concurrency=100)


@pytest.fixture
def for_each_user(config):
    return replace(config, per_user=True)


@contextmanager
def locked(folder):
    """Keep everybody else from writing to the catalogue. They can still read it."""
    with closing(sqlite3.connect(folder / "catalogue.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        yield
        writer.execute("ROLLBACK")


async def no_account(here):
    return await here.accounts.stored.find_all() == []


async def cancel(call):
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_renewal_goes_on_when_its_call_is_cancelled(for_each_user, tmp_path, authorization_server):
    async with desk(for_each_user, tmp_path) as here:
        await sign_in_due(here, ANN)
        await cancel(await renewing(here, authorization_server, ANN))
        authorization_server.switch(late=[])
        assert (await here.call(caller=ANN))["sub"] == "ann"
    assert refreshes(authorization_server) == 1
    assert not authorization_server.grants()[0]["revoked"]


async def test_a_renewal_ends_before_the_gateway_does(for_each_user, tmp_path, authorization_server):
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(desk(for_each_user, tmp_path))
        await sign_in_due(here, ANN)
        await cancel(await renewing(here, authorization_server, ANN))
        closing_down = asyncio.create_task(stack.aclose())
        await asyncio.sleep(0)
        authorization_server.switch(late=[])
        await closing_down
    async with desk(for_each_user, tmp_path) as here:
        assert (await here.call(caller=ANN))["sub"] == "ann"
    assert refreshes(authorization_server) == 1


async def test_new_tokens_that_cannot_be_stored_are_used_and_stored_later(
    config, tmp_path, authorization_server, protected_server
):
    async with desk(config, tmp_path, store_timeout_s=0.1) as here:
        await ready(here)
        before = (await here.call())["jti"]
        (old,) = await here.accounts.stored.find_all()
        protected_server.reject_known_tokens()
        call = await renewing(here, authorization_server, Caller())
        with locked(tmp_path):
            authorization_server.switch(late=[])
            renewed = (await call)["jti"]
            assert renewed != before
            assert await here.accounts.stored.find_all() == [old]
            assert (await here.call())["jti"] == renewed

        async def stored():
            return await here.accounts.stored.find_all() != [old]

        await eventually(stored, WAIT_S)
    async with desk(config, tmp_path) as here:
        await until(lambda: here.scout.servers.statuses()[0].state == "ready")
        assert (await here.call())["jti"] == renewed
    assert refreshes(authorization_server) == 1


@pytest.mark.parametrize("tool", ["whoami", "add_note"])
async def test_a_store_that_fails_gives_a_typed_error_and_the_session_goes_on(
    config, tmp_path, authorization_server, protected_server, tool
):
    """`whoami` needs another token, and `add_note` one that allows more. Neither can be recorded."""
    async with desk(config, tmp_path, store_timeout_s=0.1) as here:
        await ready(here)
        await here.call()
        if tool == "whoami":
            protected_server.reject_known_tokens()
        with locked(tmp_path):
            for _ in range(2):
                with pytest.raises(ServerUnavailableError, match=r"cannot be changed: .*locked.*; nothing was sent"):
                    await here.call(tool)
        assert (await here.call())["sub"] == "ann"
    sessions = {seen["session"] for seen in protected_server.seen("tools/call")}
    assert len(sessions) == 1


async def test_an_account_that_is_removed_during_a_renewal_does_not_come_back(
    for_each_user, tmp_path, authorization_server
):
    async with desk(for_each_user, tmp_path) as here:
        await sign_in_due(here, ANN)
        call = await renewing(here, authorization_server, ANN)
        removal = asyncio.create_task(here.scout.remove_user("ann", caller=ANN))
        await eventually(lambda: no_account(here), WAIT_S)
        authorization_server.switch(late=[])
        with pytest.raises(SignInRequiredError):
            await call
        await removal
        assert await no_account(here)


@pytest.mark.parametrize("answer", [(429, {}), (400, {"error": "invalid_request"}), (400, {"error": "something new"})])
async def test_a_hundred_calls_at_an_issuer_that_refuses_for_now_ask_it_once(
    config, tmp_path, authorization_server, protected_server, answer
):
    async with desk(config, tmp_path) as here:
        await ready(here)
        await here.call()
        protected_server.reject_known_tokens()
        authorization_server.switch(answers={"token": answer})
        before = authorization_server.counts()["token"]
        failed = await asyncio.gather(*(here.call() for _ in range(100)), return_exceptions=True)
        assert {type(error) for error in failed} == {ServerUnavailableError}
        assert {str(error) for error in failed} == {
            "the sign-in at notes cannot be renewed now: its issuer refused; nothing was sent"
        }
        assert authorization_server.counts()["token"] == before + 1
        (account,) = await here.accounts.stored.find_all()
        assert not account.refused
