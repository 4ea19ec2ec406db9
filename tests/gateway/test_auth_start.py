"""When authentication is required, when the gateway does not start, and live edits of the policy."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ToolsListChanged

from guarantees import guarantee
from guarded import MODERN, WAIT_S
from issuer import AUDIENCE, running_issuer
from serving import serving
from toolscout import Caller, Scout
from toolscout.errors import PolicyError, UsageError
from toolscout.gateway.address import requires_authentication
from toolscout.gateway.file_watcher import watch_policy

ROWS = [{"server": "crm", "name": name, "description": f"{name} of customers"} for name in ("list", "delete", "export")]
READER = '[[allow]]\nwho = ["user:ann"]\ntools = ["crm__list"]\n'
WRITER = '[[allow]]\nwho = ["user:ann"]\n\n[[deny]]\nwho = ["anyone"]\ntools = ["*__export"]\n'


@guarantee("auth:default")
def test_authentication_is_optional_on_loopback_and_required_elsewhere():
    for host in ("127.0.0.1", "localhost", "::1"):
        assert not requires_authentication(host, auth=False, issuer="", insecure_no_auth=False)
        assert requires_authentication(host, auth=True, issuer="", insecure_no_auth=False)
        assert requires_authentication(host, auth=False, issuer="https://i.example", insecure_no_auth=False)
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.com", "127.0.0.1.evil.example", ""):
        assert requires_authentication(host, auth=False, issuer="", insecure_no_auth=False)
        assert not requires_authentication(host, auth=False, issuer="", insecure_no_auth=True)
    for auth, issuer in ((True, ""), (False, "https://i.example")):
        with pytest.raises(UsageError):
            requires_authentication("0.0.0.0", auth=auth, issuer=issuer, insecure_no_auth=True)


@guarantee("auth:default")
@pytest.mark.parametrize(
    ("options", "environment", "said"),
    [
        (["--http", "8080", "--auth"], {}, "neither a usable API key nor an issuer"),
        (["--http", "0.0.0.0:8080"], {}, "neither a usable API key nor an issuer"),
        (["--auth"], {}, "--auth requires --http"),
        (["--http", "8080", "--auth", "--insecure-no-auth"], {}, "contradict"),
        (["--http", "8080"], {"TOOLSCOUT_AUTH_ISSUER": "https://i.example"}, "TOOLSCOUT_AUTH_AUDIENCE"),
        (["--http", "8080"], {"TOOLSCOUT_POLICY": "absent.toml", "TOOLSCOUT_AUTH_ISSUER": ""}, "absent.toml"),
    ],
)
def test_it_does_not_start_if_nobody_or_everybody_could_authenticate(
    toolscout, monkeypatch, tmp_path, options, environment, said
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ran = toolscout("serve", *options, "--store", f"sqlite:///{tmp_path / 'c.db'}")
    assert ran.code == 2
    assert said in ran.err


@guarantee("access:fails-closed")
async def test_each_edit_of_the_policy_is_applied_once_and_a_broken_one_not_at_all(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(READER)
    seen: asyncio.Queue = asyncio.Queue()
    following = asyncio.create_task(watch_policy(path, seen.put_nowait, seen.put_nowait, 0.01))

    async def edited(text):
        path.write_text(text)
        return await asyncio.wait_for(seen.get(), WAIT_S)

    await asyncio.sleep(0.2)
    assert len((await edited(WRITER)).deny) == 1
    broken = await edited("[[allow]]\nwho = [")
    assert isinstance(broken, PolicyError)
    assert isinstance(await edited('[[allow]]\nwoh = ["anyone"]\n'), PolicyError)
    path.unlink()
    assert isinstance(await asyncio.wait_for(seen.get(), WAIT_S), PolicyError)
    assert len((await edited(READER)).allow) == 1
    assert seen.empty()
    following.cancel()


@guarantee("access:fails-closed")
async def test_a_policy_that_is_being_written_is_not_read_while_it_is_empty(tmp_path, monkeypatch):
    monkeypatch.setattr("toolscout.gateway.file_watcher._EMPTY_S", 60)
    path = tmp_path / "policy.toml"
    path.write_text(READER)
    seen: asyncio.Queue = asyncio.Queue()
    following = asyncio.create_task(watch_policy(path, seen.put_nowait, seen.put_nowait, 0.01))
    await asyncio.sleep(0.2)
    path.write_text("")
    await asyncio.sleep(0.2)
    assert seen.empty()
    path.write_text(WRITER)
    assert len((await asyncio.wait_for(seen.get(), WAIT_S)).deny) == 1
    assert seen.empty()
    following.cancel()


@pytest.mark.process
@guarantee("access:fails-closed", "auth:token")
async def test_a_running_gateway_follows_its_policy_and_takes_keys_and_tokens(tmp_path, monkeypatch):
    policy, audit = tmp_path / "policy.toml", tmp_path / "audit.jsonl"
    policy.write_text(READER)
    with running_issuer() as issuer:
        for name, value in {
            "POLICY": policy,
            "AUDIT": audit,
            "REINDEX_INTERVAL_S": "0.1",
            "AUTH_ISSUER": issuer.url,
            "AUTH_AUDIENCE": AUDIENCE,
        }.items():
            monkeypatch.setenv(f"TOOLSCOUT_{name}", str(value))
        async with Scout.open(store=f"sqlite:///{tmp_path / 'catalogue.db'}") as scout:
            await scout.index_tools(ROWS, caller=Caller())
            key, _ = await scout.api_keys.create(tenant="local", user="ann")
        with serving(tmp_path, "--surface", "all") as gateway:
            for number, token in enumerate((key, issuer.token()), start=1):
                async with (
                    httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=WAIT_S) as carrier,
                    Client(streamable_http_client(gateway.url, http_client=carrier), mode=MODERN, cache=None) as client,
                    client.listen(tools_list_changed=True) as changes,
                ):

                    async def names(client=client):
                        return [tool.name for tool in (await client.list_tools()).tools]

                    assert await names() == ["crm__list"]
                    policy.write_text(READER + "\n[[deny")
                    await until(lambda n=number: gateway.log.read_text().count("policy was not applied") == n)
                    assert await names() == ["crm__list"]
                    policy.write_text(WRITER)
                    assert isinstance(await asyncio.wait_for(anext(aiter(changes)), WAIT_S), ToolsListChanged)
                    assert await names() == ["crm__delete", "crm__list"]
                    policy.write_text(READER)
                    assert isinstance(await asyncio.wait_for(anext(aiter(changes)), WAIT_S), ToolsListChanged)
            response = httpx2.post(gateway.url, json={}, headers={"Authorization": "Bearer nonsense"})
            assert response.status_code == 401
            assert "resource_metadata" in response.headers["www-authenticate"]
    acts = [json.loads(line)["act"] for line in audit.read_text().splitlines()]
    assert acts.count("policy.apply") == 4
    assert acts.count("policy.refuse") == 2
    assert key not in gateway.log.read_text() + audit.read_text()


async def until(condition):
    """Wait until a condition holds."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - a file of another process
            await asyncio.sleep(0.02)
