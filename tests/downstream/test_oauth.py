"""The gateway authorizes itself: client credentials, discovered or named, or a token from a file."""

import base64
import json

import pytest

from downstreams import opened
from fake_http import fake_http
from toolscout.config import OAuthConfig, ServerConfig


@pytest.fixture
def server():
    with fake_http() as found:
        found.token = "T1"
        yield found


def web(server, **oauth):
    url = f"{server.origin}/mcp"
    return ServerConfig(title="web", transport="http", url=url, private=True, oauth=OAuthConfig(**oauth))


def tokens(server):
    return [(headers, body) for _, path, headers, body in server.seen if path == "/token"]


@pytest.mark.parametrize("named", [True, False], ids=["named", "discovered"])
async def test_client_credentials_fetch_a_token_once(server, named):
    where = f"{server.origin}/token" if named else None
    config = web(server, client_id="me", client_secret="s:ecret", token_url=where, scopes=("a", "b"))
    async with opened(config) as here:
        for _ in range(3):
            await here.call("web", "echo")
    ((headers, body),) = tokens(server)
    assert base64.b64decode(headers["authorization"].split()[1]).decode() == "me:s%3Aecret"
    assert body["grant_type"] == ["client_credentials"]
    assert body["scope"] == ["a b"]
    assert ("resource" in body) is not named
    assert len(server.calls("echo")) == 3


@pytest.mark.parametrize("text", ["T1\n", json.dumps({"access_token": "T1"})])
async def test_a_token_from_a_file_is_used(server, tmp_path, text):
    file = tmp_path / "token"
    file.write_text(text, "utf-8")
    async with opened(web(server, token_file=str(file))) as here:
        await here.call("web", "echo")
    assert tokens(server) == []


async def test_an_old_token_is_renewed_and_kept_for_its_owner_alone(server, tmp_path):
    file = tmp_path / "token"
    file.write_text(json.dumps({"access_token": "old", "refresh_token": "again"}), "utf-8")
    endpoint = f"{server.origin}/token"
    config = web(server, client_id="me", client_secret="secret", token_file=str(file), token_url=endpoint)
    async with opened(config) as here:
        await here.call("web", "echo")
    ((_, body),) = tokens(server)
    assert body["refresh_token"] == ["again"]
    kept = json.loads(file.read_text("utf-8"))
    assert (kept["access_token"], kept["refresh_token"]) == ("T1", "again")
    assert file.stat().st_mode & 0o077 == 0


async def test_a_refusal_is_said_without_the_secret(server):
    async with opened(web(server, token_file="/no/such/file"), ready=False) as here:
        status = (await here.state("web", "failed")).status
        assert "401" in status.detail
    config = web(server, client_id="me", client_secret="canary", token_url=f"{server.origin}/nowhere")
    async with opened(config, ready=False) as here:
        status = (await here.state("web", "failed")).status
        assert "gives no token" in status.detail
        assert "canary" not in status.detail
