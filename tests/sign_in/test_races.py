"""What others do at the same moment is taken into account: renewals, sign-ins, sign-outs, issuers that are down."""

import asyncio
from dataclasses import replace

import httpx2
import pytest

from downstreams import QUICK, fake, until
from guarantees import guarantee
from sign_ins import Desk, desk, protected, ready, refreshes, renewing, sign_in_due
from toolscout import Scout
from toolscout.config import Config
from toolscout.downstream import credentials
from toolscout.downstream.credentials import ServerCredentials
from toolscout.downstream.sign_in.account_auth import AccountAuth
from toolscout.downstream.sign_in.account_tokens import AccountTokens
from toolscout.errors import ServerUnavailableError, SignInRequiredError
from toolscout.models import Caller, Scope

pytestmark = [pytest.mark.process, guarantee("signin:bound")]

ANN = Caller(tenant="acme", user="ann")


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server, concurrency=100)


@pytest.fixture
def for_each_user(config):
    return replace(config, per_user=True)


async def test_tokens_that_another_process_got_meanwhile_count_when_ours_are_refused(
    for_each_user, tmp_path, authorization_server
):
    async with desk(for_each_user, tmp_path) as here:
        theirs = await here.sign_in(ANN.scope)
        await sign_in_due(here, ANN)
        authorization_server.switch(refuse_refresh=True)
        call = await renewing(here, authorization_server, ANN)
        await here.accounts.stored.put(theirs)
        authorization_server.switch(late=[])
        assert (await call)["sub"] == "ann"
        assert await here.accounts.stored.find_all() == [theirs]


async def test_a_token_of_another_process_that_is_refused_too_is_renewed(for_each_user, tmp_path, authorization_server):
    async with desk(for_each_user, tmp_path) as here:
        old, stored = await here.sign_in(ANN.scope), here.accounts.stored
        auth = AccountAuth(AccountTokens(stored, ANN.scope, "notes", for_each_user, QUICK))
        request = httpx2.Request("POST", for_each_user.url)
        refusal = httpx2.Response(401, request=request)
        flow = auth.async_auth_flow(request)
        sent = [(await anext(flow)).headers["authorization"]]
        theirs = await here.sign_in(ANN.scope)
        for _ in range(2):
            sent.append((await flow.asend(refusal)).headers["authorization"])
        assert sent[:2] == [f"Bearer {old.access_token}", f"Bearer {theirs.access_token}"]
        assert refreshes(authorization_server) == 1
        with pytest.raises(SignInRequiredError, match="refuses the token that its issuer gave"):
            await flow.asend(refusal)
        assert len(set(sent)) == 3


async def test_a_token_that_is_still_valid_is_used_while_the_issuer_is_down(
    for_each_user, tmp_path, authorization_server, protected_server
):
    async with desk(for_each_user, tmp_path) as here:
        account = await sign_in_due(here, ANN)
        authorization_server.switch(down=["token"])
        for _ in range(3):
            assert (await here.call(caller=ANN))["sub"] == "ann"
        assert authorization_server.counts()["token"] == 2
        await here.accounts.stored.put(replace(account, access_token="ended", expires_at=1.0))
        with pytest.raises(ServerUnavailableError, match="its issuer does not answer; nothing was sent"):
            await until_read(here)
    assert {seen["status"] for seen in protected_server.seen("tools/call")} == {200}


async def until_read(here):
    """Call until the account that is in the store is used."""
    async with asyncio.timeout(20):
        while True:
            await here.call(caller=ANN)


async def test_a_call_that_needs_more_is_sent_again_with_a_token_that_allows_it(
    config, tmp_path, authorization_server, protected_server
):
    async with desk(config, tmp_path) as here, desk(config, tmp_path) as other:
        await ready(other)
        await until(lambda: here.scout.servers.statuses()[0].state == "ready")
        with pytest.raises(SignInRequiredError):
            await other.call("add_note")
        await here.call()
        await other.sign_in()
        assert await here.call("add_note") == {"notes": 1}
        (account,) = await here.accounts.stored.find_all()
        assert account.wanted == ""
    assert [seen["status"] for seen in protected_server.seen("tools/call") if seen["tool"] == "add_note"].count(
        200
    ) == 1


async def test_what_a_server_wants_is_noted_after_a_change_that_another_process_makes(
    config, tmp_path, authorization_server, protected_server
):
    async with desk(config, tmp_path) as here:
        await ready(here)
        stored = here.accounts.stored
        async with stored.changing(Scope(), "notes"):
            account = await stored.find(Scope(), "notes")
            assert account is not None
            call = asyncio.create_task(here.call("add_note"))
            await until(lambda: any(seen["status"] == 403 for seen in protected_server.seen("tools/call")))
            await asyncio.wait([call], timeout=0.3)
            assert not call.done()
            await stored.put(replace(account, refresh_token="theirs"))
        with pytest.raises(SignInRequiredError, match="it wants you to allow more"):
            await call
        (account,) = await stored.find_all()
        assert (account.refresh_token, account.wanted) == ("theirs", "tools:write")


async def test_signing_out_revokes_the_tokens_that_were_renewed_since(
    config, tmp_path, authorization_server, protected_server
):
    async with desk(config, tmp_path) as here:
        await ready(here)
        (old,) = await here.accounts.stored.find_all()
        await here.call()
        protected_server.reject_known_tokens()
        await here.call()
        (new,) = await here.accounts.stored.find_all()
        assert new.access_token != old.access_token
        assert await here.accounts.sign_out(old, config)
        assert await here.accounts.stored.find_all() == []
    assert authorization_server.revoked_tokens() == [new.access_token]


async def test_calls_of_other_servers_go_on_while_an_issuer_does_not_answer(
    config, tmp_path, authorization_server, protected_server
):
    other = fake(tmp_path, "other")
    settings = replace(QUICK, store=f"sqlite:///{tmp_path / 'catalogue.db'}", embedder="none")
    async with Scout.open(Config(servers=(config, other.config)), settings=settings) as scout:
        here = Desk(scout, config)
        await ready(here)
        await until(lambda: all(status.state == "ready" for status in scout.servers.statuses()))
        await here.call()
        protected_server.reject_known_tokens()
        authorization_server.switch(held=["token"])
        waiting = [asyncio.create_task(here.call()) for _ in range(50)]
        await until(lambda: authorization_server.counts()["token"] == 2)
        live = scout.servers.get("other")
        assert live is not None
        for number in range(50):
            result = await live.call_tool("echo", {"text": str(number)}, caller=Caller())
            assert result["content"][0]["text"] == str(number)
        assert not any(call.done() for call in waiting)
        authorization_server.switch(held=[], down=["token"])
        failed = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(error) for error in failed} == {ServerUnavailableError}
    assert refreshes(authorization_server) == 0


async def test_refusals_of_calls_without_an_account_do_not_all_read_the_metadata(
    config, tmp_path, authorization_server
):
    """A server whose refusal does not say where its metadata is."""
    async with desk(config, tmp_path) as here:
        before = authorization_server.counts().get("metadata", 0)
        auth = AccountAuth(AccountTokens(here.accounts.stored, Scope(), "notes", config, QUICK))
        for _ in range(10):
            request = httpx2.Request("POST", config.url)
            flow = auth.async_auth_flow(request)
            await anext(flow)
            with pytest.raises(SignInRequiredError):
                await flow.asend(httpx2.Response(401, request=request))
        assert authorization_server.counts()["metadata"] - before < 5


async def test_accounts_of_users_who_called_long_ago_are_read_again_when_they_call(
    for_each_user, tmp_path, monkeypatch, authorization_server
):
    monkeypatch.setattr(credentials, "MAX_USERS", 2)
    async with desk(for_each_user, tmp_path) as here:
        callers = [Caller(tenant="acme", user=name) for name in ("ann", "bob", "eve")]
        for caller in callers:
            await here.sign_in(caller.scope)
        kept = ServerCredentials("notes", for_each_user, QUICK, here.accounts.stored, lambda: None)
        await kept.of(callers[0])
        account = await here.accounts.stored.find(callers[0].scope, "notes")
        assert account is not None
        await here.accounts.stored.put(replace(account, access_token="newer"))
        for caller in [*callers[1:], callers[0]]:
            auth, _ = await kept.of(caller)
        assert isinstance(auth, AccountAuth)
        assert "newer" in auth.texts()
        await kept.close()
