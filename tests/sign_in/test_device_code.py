"""Signing in with a code that is entered on another device, at issuers that are slow, down or hostile."""

import asyncio
import time

import pytest

from downstreams import until
from guarantees import guarantee
from sign_ins import desk, protected
from toolscout.downstream.sign_in.device_code import DeviceCode
from toolscout.errors import SignInError
from toolscout.models import Scope

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann", device_interval_s=1)
    return protected(protected_server, authorization_server)


@pytest.mark.parametrize(
    ("fault", "least_s"),
    [
        ({"answers": {"token": (400, {"error": "slow_down"})}}, 6.0),
        ({"answers": {"token": (400, {"error": "authorization_pending"})}}, 1.0),
        ({"down": ["token"]}, 2.0),
    ],
    ids=["slow_down", "pending", "down"],
)
async def test_it_goes_on_asking_as_slowly_as_the_issuer_wants(config, tmp_path, authorization_server, fault, least_s):
    authorization_server.switch(**fault)
    async with desk(config, tmp_path) as here:
        sign_in = asyncio.create_task(
            here.accounts.sign_in_with_device("notes", config, Scope(), lambda _: None),
        )
        await until(lambda: authorization_server.counts().get("token", 0) == 1)
        asked = time.monotonic()
        authorization_server.switch(answers={}, down=[])
        account = await sign_in
        assert time.monotonic() - asked > least_s - 0.5
        assert authorization_server.counts()["token"] == 2
        assert await here.accounts.stored.find_all() == [account]


async def test_a_person_who_declines_on_the_device_is_not_signed_in(config, tmp_path, authorization_server):
    authorization_server.switch(approve="")
    async with desk(config, tmp_path) as here:
        with pytest.raises(SignInError, match="was declined"):
            await here.accounts.sign_in_with_device(
                "notes", config, Scope(), lambda code: authorization_server.decide_device(code.code)
            )


async def test_a_device_page_that_is_not_https_is_not_shown(config, tmp_path, authorization_server):
    codes = {"device_code": "d", "user_code": "u", "verification_uri": f"{authorization_server.url}/device"}
    shown: list[DeviceCode] = []
    async with desk(config, tmp_path) as here:
        for wrong in ({"verification_uri": "http://attacker.example"}, {"verification_uri_complete": "file:///etc"}):
            authorization_server.switch(answers={"device_authorization": (200, {**codes, **wrong})})
            with pytest.raises(SignInError, match="device page of notes is not an https address"):
                await here.accounts.sign_in_with_device("notes", config, Scope(), shown.append)
    assert shown == []


async def test_a_device_code_with_a_lifetime_without_sense_can_be_used(config, tmp_path, authorization_server):
    codes = {"device_code": "d", "user_code": "u", "verification_uri": f"{authorization_server.url}/device"}
    answer = {**codes, "interval": 1, "expires_in": 10**400}
    authorization_server.switch(answers={"device_authorization": (200, answer)})
    async with desk(config, tmp_path) as here:
        with pytest.raises(SignInError, match="gave no token: it answered 400 invalid_grant"):
            await here.accounts.sign_in_with_device("notes", config, Scope(), lambda _: None)
