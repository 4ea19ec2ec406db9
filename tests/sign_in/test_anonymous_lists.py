"""Servers that answer before anybody has signed in: an empty list removes no tools, and a sign-in lists them again."""

from dataclasses import replace

import pytest

from downstreams import WAIT_S
from guarantees import guarantee
from sign_ins import desk, protected
from toolscout.errors import SignInRequiredError
from waiting import eventually

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server)


def state(here):
    return here.scout.servers.statuses()[0].state


async def until_total(here, total):
    async def listed():
        return (await here.scout.overview()).total == total

    await eventually(listed, WAIT_S)


async def test_a_server_that_lists_nothing_before_a_sign_in_keeps_its_stored_tools(
    config, tmp_path, protected_server, caplog
):
    protected_server.switch(anonymous="empty")
    async with desk(config, tmp_path, unavailable_s=0.0) as here:
        assert state(here) == "needs_login"
        with pytest.raises(SignInRequiredError):
            await here.call()
        await here.sign_in()
        await until_total(here, 3)
        assert state(here) == "ready"
        (account,) = await here.accounts.stored.find_all()
        await here.accounts.sign_out(account, config)
    caplog.clear()
    async with desk(config, tmp_path, unavailable_s=0.0) as here:
        assert state(here) == "needs_login"
        answer = await here.scout.search_tools("count notes")
        assert {match.to_dict()["hint"] for match in answer} == {"run `toolscout login notes`"}
        assert (await here.scout.overview()).total == 3
        (line,) = [record.getMessage() for record in caplog.records if "notes" in record.getMessage()]
        assert line.startswith("server notes is not signed in to: notes needs you to sign in")


async def test_what_a_server_lists_more_after_a_sign_in_is_listed_then(config, tmp_path, protected_server):
    protected_server.switch(anonymous="listed", tools={"ann": ["whoami"]})
    async with desk(config, tmp_path) as here:
        assert (state(here), (await here.scout.overview()).total) == ("ready", 3)
        await here.sign_in()
        assert (await here.call())["sub"] == "ann"
        await until_total(here, 1)
        assert [match.tool.name for match in await here.scout.list_tools()] == ["whoami"]


async def test_a_server_that_names_no_issuer_may_list_nothing(config, tmp_path, protected_server):
    protected_server.switch(anonymous="listed")
    plain = replace(config, oauth=None)
    async with desk(plain, tmp_path) as here:
        assert (await here.scout.overview()).total == 3
    protected_server.switch(anonymous="empty", metadata={"authorization_servers": None})
    async with desk(plain, tmp_path) as here:
        assert (state(here), (await here.scout.overview()).total) == ("ready", 0)
