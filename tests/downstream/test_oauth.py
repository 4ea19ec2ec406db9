"""The gateway authorizes itself with client credentials or with a token from a file."""

import asyncio
import base64
import json
import os

import httpx2
import pytest

from downstreams import opened
from fake_http import fake_http
from guarantees import guarantee
from toolscout.config import OAuthConfig, ServerConfig
from toolscout.downstream.oauth import GatewayTokenAuth
from toolscout.errors import ServerUnavailableError
from toolscout.settings import Settings


@pytest.fixture
def server():
    with fake_http() as running:
        running.token = "T1"
        yield running


def web(server, **oauth):
    url = f"{server.origin}/mcp"
    return ServerConfig(title="web", transport="http", url=url, private=True, oauth=OAuthConfig(**oauth))


def tokens(server):
    return [(headers, body) for _, path, headers, body in server.seen if path == "/token"]


@pytest.mark.parametrize("configured", [True, False], ids=["configured", "discovered"])
async def test_client_credentials_fetch_a_token_once(server, configured):
    token_url = f"{server.origin}/token" if configured else None
    config = web(server, client_id="me", client_secret="s:ecret", token_url=token_url, scopes=("a", "b"))
    async with opened(config) as here:
        for _ in range(3):
            await here.call("web", "echo")
    ((headers, body),) = tokens(server)
    assert base64.b64decode(headers["authorization"].split()[1]).decode() == "me:s%3Aecret"
    assert body["grant_type"] == ["client_credentials"]
    assert body["scope"] == ["a b"]
    assert ("resource" in body) is not configured
    assert len(server.calls("echo")) == 3


@pytest.mark.parametrize("text", ["T1\n", json.dumps({"access_token": "T1"})])
async def test_a_token_from_a_file_is_used(server, tmp_path, text):
    file = tmp_path / "token"
    file.write_text(text, "utf-8")
    async with opened(web(server, token_file=str(file))) as here:
        await here.call("web", "echo")
    assert tokens(server) == []


async def test_an_expired_token_is_renewed_and_its_file_is_readable_by_the_owner_only(server, tmp_path):
    file = tmp_path / "token"
    file.write_text(json.dumps({"access_token": "old", "refresh_token": "again"}), "utf-8")
    other = tmp_path / "other"
    other.write_text("untouched")
    for name in (f".token.{os.getpid()}", ".token.tmp", "token.tmp"):
        (tmp_path / name).symlink_to(other)
    endpoint = f"{server.origin}/token"
    config = web(server, client_id="me", client_secret="secret", token_file=str(file), token_url=endpoint)
    async with opened(config) as here:
        await here.call("web", "echo")
    assert other.read_text() == "untouched", "no link is followed to write it"
    ((_, body),) = tokens(server)
    assert body["refresh_token"] == ["again"]
    stored = json.loads(file.read_text("utf-8"))
    assert (stored["access_token"], stored["refresh_token"]) == ("T1", "again")
    assert file.stat().st_mode & 0o077 == 0


async def test_the_error_of_a_refused_token_request_does_not_hold_the_secret(server):
    async with opened(web(server, token_file="/no/such/file"), ready=False) as here:
        status = (await here.state("web", "failed")).status
        assert "401" in status.detail
    config = web(server, client_id="me", client_secret="canary", token_url=f"{server.origin}/nowhere")
    async with opened(config, ready=False) as here:
        status = (await here.state("web", "failed")).status
        assert "no token for web" in status.detail
        assert "canary" not in status.detail


@guarantee("signin:bound")
@pytest.mark.parametrize(
    ("elsewhere", "said"),
    [
        ({"resource": "https://payroll.company.example"}, "is about another server"),
        ({"issuer": "https://login.company.example"}, "calls itself by another name"),
        ({"endpoint": "http://attacker.example"}, "not an https address"),
    ],
)
async def test_a_server_gets_neither_a_token_for_another_server_nor_one_of_another_issuer(server, elsewhere, said):
    server.elsewhere = elsewhere
    async with opened(web(server, client_id="me", client_secret="secret"), ready=False) as here:
        assert said in (await here.state("web", "failed")).status.detail
    assert tokens(server) == []


@guarantee("signin:bound")
async def test_the_secret_goes_only_to_the_issuer_of_the_config(server):
    with fake_http() as company:
        company.token = server.token
        config = web(server, client_id="me", client_secret="secret", issuer=company.origin)
        async with opened(config, ready=False) as here:
            assert "another issuer than its config" in (await here.state("web", "failed")).status.detail
        assert tokens(server) == tokens(company) == []
        server.elsewhere = {"metadata": company.origin}
        async with opened(config) as here:
            await here.call("web", "echo")
        ((_, body),) = tokens(company)
        assert body["resource"] == [f"{server.origin}/mcp"]
    assert tokens(server) == []


async def test_a_token_that_is_said_to_live_for_ages_is_used(server):
    server.expires_in = 10**400
    async with opened(web(server, client_id="me", client_secret="secret")) as here:
        await here.call("web", "echo")
    assert len(tokens(server)) == 1


async def test_a_file_that_holds_no_usable_token_counts_as_none(server, tmp_path):
    for text in ('{"a":' * 50_000, '{"access_token": 7, "expires_at": "soon"}'):
        (tmp_path / "token").write_text(text, "utf-8")
        async with opened(web(server, token_file=str(tmp_path / "token")), ready=False) as here:
            assert "401" in (await here.state("web", "failed")).status.detail


@pytest.mark.parametrize("path", ["/nowhere", "/token"], ids=["refused", "failed"])
async def test_calls_that_waited_for_a_token_share_its_failure_and_send_nothing(server, tmp_path, path):
    file = tmp_path / "token"
    file.write_text(json.dumps({"access_token": "old", "expires_at": 1}), "utf-8")
    server.endless = "token"
    token_url = f"{server.origin}{path}"
    config = web(server, client_id="me", client_secret="secret", token_file=str(file), token_url=token_url)
    assert config.oauth is not None
    auth = GatewayTokenAuth(config, config.oauth, Settings())
    async with httpx2.AsyncClient(auth=auth) as client:
        calls = await asyncio.gather(*(client.post(config.url, json={}) for _ in range(4)), return_exceptions=True)
    assert all(isinstance(error, ServerUnavailableError) for error in calls), calls
    assert len({str(error) for error in calls}) == 1
    assert [asked for _, asked, _, _ in server.seen] == [path]
