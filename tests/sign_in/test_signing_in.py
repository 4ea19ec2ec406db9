"""A person signs in to a server that demands tokens: the calls carry the token, which is renewed and revoked."""

import pytest

from downstreams import until
from guarantees import guarantee
from sign_ins import desk, protected
from toolscout.errors import SignInRequiredError

pytestmark = [pytest.mark.process, guarantee("signin:bound")]


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server)


async def test_a_server_that_demands_a_sign_in_says_which_command_helps(config, tmp_path):
    async with desk(config, tmp_path) as here:
        (status,) = here.scout.servers.statuses()
        assert status.state == "needs_login"
        assert status.hint == "run `toolscout login notes`"
        with pytest.raises(SignInRequiredError, match="notes needs you to sign in; nothing was sent"):
            await here.call()


async def test_a_running_gateway_uses_the_account_as_soon_as_somebody_has_signed_in(config, tmp_path):
    async with desk(config, tmp_path) as here:
        await here.sign_in()
        await until(lambda: here.scout.servers.statuses()[0].state == "ready")
        who = await here.call()
        assert (who["sub"], who["scope"], who["aud"]) == ("ann", "tools:read", config.url)
