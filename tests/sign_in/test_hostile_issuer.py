"""Issuers and servers that answer with nonsense get a typed error, and nothing of it is stored or sent."""

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from downstreams import QUICK
from guarantees import guarantee
from sign_ins import REDIRECT, consent, desk, protected
from toolscout.config import Config, ServerConfig
from toolscout.errors import SignInError
from toolscout.models import Scope
from toolscout.scout.accounts import find_refusing
from web import serving

pytestmark = [pytest.mark.process, guarantee("signin:bound")]

NO_ADDRESSES = [
    "https://[",
    "https://issuer.example:999999/x",
    "https://issuer.example:0/x",
    "https://",
    "https://⒈.com/",
]


@pytest.fixture
def config(authorization_server, protected_server):
    authorization_server.switch(approve="ann")
    return protected(protected_server, authorization_server)


def refusing(metadata):
    """A server that refuses everything, and names the address of its metadata."""

    async def refuse(_request):
        challenge = f'Bearer resource_metadata="{metadata}"'
        return Response("no", 401, {"WWW-Authenticate": challenge.encode("utf-8").decode("latin-1")})

    return Starlette(routes=[Route("/mcp", refuse, methods=["GET", "POST"])])


@pytest.mark.guarantee("egress:ssrf")
@pytest.mark.parametrize("address", NO_ADDRESSES)
async def test_metadata_at_no_address_is_a_typed_error(tmp_path, address):
    async with serving(refusing(address)) as origin:
        config = ServerConfig(title="notes", transport="http", url=f"{origin}/mcp", private=True)
        assert await find_refusing(Config(servers=(config,)), QUICK) == {"notes": True}
        async with desk(config, tmp_path) as here:
            with pytest.raises(SignInError, match="metadata address of notes is not an https address"):
                await here.sign_in()
            assert here.scout.servers.statuses()[0].state == "needs_login"


@pytest.mark.parametrize("endpoint", ["token_endpoint", "authorization_endpoint", "device_authorization_endpoint"])
async def test_an_endpoint_at_no_address_is_a_typed_error(config, tmp_path, authorization_server, endpoint):
    authorization_server.switch(metadata={endpoint: "https://["})
    async with desk(config, tmp_path) as here:
        with pytest.raises(SignInError):
            await here.sign_in()


@pytest.mark.parametrize("token", ["t\r\nX-Other: y", "tök", "two words", "", "\x00"])
async def test_a_token_that_no_header_can_carry_is_refused_and_not_stored(
    config, tmp_path, authorization_server, token
):
    async with desk(config, tmp_path) as here:
        pending = await here.accounts.begin("notes", config, Scope(), REDIRECT)
        answer = await consent(pending.link)
        authorization_server.switch(answers={"token": (200, {"access_token": token, "token_type": "Bearer"})})
        with pytest.raises(SignInError, match="cannot be sent in a header") as failed:
            await here.accounts.finish(config, pending, answer)
        assert await here.accounts.pending.find_places() == [], "it has ended"
        assert not token or token not in str(failed.value)
        assert await here.accounts.stored.find_all() == []


@pytest.mark.parametrize("seconds", [10**400, 10**20, -1], ids=["endless", "long", "negative"])
async def test_a_lifetime_without_sense_does_not_stop_a_sign_in(config, tmp_path, authorization_server, seconds):
    async with desk(config, tmp_path) as here:
        pending = await here.accounts.begin("notes", config, Scope(), REDIRECT)
        answer = await consent(pending.link)
        body = {"access_token": "abc|123", "token_type": "Bearer", "expires_in": seconds}
        authorization_server.switch(answers={"token": (200, body)})
        account = await here.accounts.finish(config, pending, answer)
    assert account.expires_at is not None
    assert account.expires_at < 10**10
