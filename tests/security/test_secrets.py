"""Secrets reach only the server that they are for."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from collector import collecting
from downstreams import fake, opened
from fake_http import FakeHttp, fake_http
from guarantees import guarantee
from scraping import scrape, until_indexed
from servers import free_port
from serving import Serving, serving
from toolscout import Caller, Scout, Settings, ToolscoutError
from toolscout.config import OAuthConfig, ServerConfig, UserCredentials, read_config
from toolscout.downstream.quoted_secrets import QuotedSecrets
from toolscout.errors import CallError, to_wire
from toolscout.telemetry import without_password

CANARIES = {
    name: f"canary-{name}-7f3a"
    for name in (
        "environment",
        "file",
        "header",
        "query",
        "argv",
        "oauth",
        "user",
        "unused",
        "argument",
        "unknown",
        "token",
        "policy",
    )
}


@pytest.fixture
def http() -> Iterator[FakeHttp]:
    with fake_http() as server:
        yield server


def write_everything(folder: Path, http: FakeHttp) -> Path:
    """Write a config with a secret in every field, also for servers that fail."""
    behind = fake(folder, "fake", "--tools", "3").config
    (folder / "token").write_text(CANARIES["file"] + "\n")
    web = f"{http.origin}/mcp?token={CANARIES['query']}"
    entries: dict[str, Any] = {
        "fake": {
            "command": behind.command,
            "args": [*behind.args, CANARIES["argv"]],
            "env": {"A": "${CANARY_ENVIRONMENT}", "B": "${file:token}"},
        },
        "web": {
            "type": "http",
            "url": web,
            "headers": {"X-Key": CANARIES["header"]},
            "toolscout": {"private": True, "users": {"acme/ann": {"headers": {"X-User": CANARIES["user"]}}}},
        },
        "gone": {
            "type": "http",
            "url": f"http://127.0.0.1:9/mcp?token={CANARIES['query']}",
            "headers": {"X-Key": CANARIES["header"]},
            "toolscout": {"private": True, "oauth": {"client_id": "me", "client_secret": CANARIES["oauth"]}},
        },
        "dead": {"command": sys.executable, "args": ["-c", "raise SystemExit(3)", CANARIES["argv"]]},
        "absent": {"command": "no-such-command-anywhere", "env": {"A": CANARIES["environment"]}},
        "off": {"command": "x", "env": {"A": CANARIES["unused"]}, "disabled": True},
    }
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": entries}))
    (folder / "policy.toml").write_text(f'# {CANARIES["policy"]}\n[[allow]]\nwho = ["anyone"]\n')
    return path


def stored(folder: Path) -> bytes:
    """Return the catalogue and the audit log, byte for byte."""
    files = [*folder.glob("catalogue.db*"), *folder.glob("audit.jsonl*")]
    assert len(files) >= 2
    return b"".join(path.read_bytes() for path in files)


def absent(everything: bytes, *, but: tuple[str, ...] = ()) -> None:
    for name, canary in CANARIES.items():
        if name not in but:
            assert canary.encode() not in everything, name


@pytest.mark.process
@guarantee("secret:nowhere", "auth:no-passthrough")
async def test_a_gateway_with_secrets_in_every_corner_shows_none(
    tmp_path: Path, http: FakeHttp, toolscout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_ENVIRONMENT", CANARIES["environment"])
    monkeypatch.setenv("TOOLSCOUT_AUDIT", str(tmp_path / "audit.jsonl"))
    monkeypatch.setenv("TOOLSCOUT_POLICY", str(tmp_path / "policy.toml"))
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    monkeypatch.setenv("TOOLSCOUT_CALL_TIMEOUT_S", "1")
    write_everything(tmp_path, http)
    key = await make_key(tmp_path)
    answers: list[Any] = []
    port = free_port()
    with collecting() as collector:
        for name, value in {**collector.environment, "TOOLSCOUT_LOG_FORMAT": "json"}.items():
            monkeypatch.setenv(name, value)
        with serving(tmp_path, "--auth", "--diagnostics", str(port)) as gateway:
            until_indexed(port, 4)
            await use_everything(gateway, key, answers)
            metrics = scrape(port).encode()
    kept = stored(tmp_path) + gateway.log.read_bytes() + metrics + b"".join(collector.received)
    everything = kept + repr(answers).encode()
    assert {"execute_tool fake__tool0", "tools/call echo"} <= {item.name for item in collector.spans()}
    absent(kept)
    absent(everything, but=("unknown",))  # callers read the names of their own arguments
    assert key.encode() not in everything
    assert key.split("_", 2)[2].encode() not in everything
    assert key.split("_")[1].encode() in (tmp_path / "audit.jsonl").read_bytes()
    received = json.dumps([item[2] for item in http.seen]) + (tmp_path / "fake.log").read_text()
    assert key not in received
    assert CANARIES["token"] not in received
    assert CANARIES["header"] in received, "its own server gets it"


async def use_everything(gateway: Serving, key: str, answers: list[Any]) -> None:
    """Send requests that are refused, that fail and that succeed."""
    for token in (CANARIES["token"], key[:-1] + "x", f"tsk_{CANARIES['token']}"):
        async with httpx2.AsyncClient() as stranger:
            refused = await stranger.post(gateway.url, headers={"Authorization": f"Bearer {token}"}, json={})
            answers.append((refused.status_code, dict(refused.headers), refused.text))
            assert refused.status_code == 401
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as carrier,
        Client(streamable_http_client(gateway.url, http_client=carrier), mode="2026-07-28") as client,
    ):
        answers.append(await client.list_tools())
        arguments = {"password": CANARIES["argument"], CANARIES["unknown"]: 1}
        for name in (
            "fake__tool0",
            "web__echo",
            "gone__x",
            "dead__x",
            "absent__x",
            "off__x",
            CANARIES["policy"][:3],
        ):
            answers.append(await client.call_tool("call_tool", {"name": name, "arguments": arguments}))
            answers.append(await client.call_tool("call_tool", {"name": name, "arguments": {}, "version": "0" * 12}))
        answers.append(await client.call_tool("search_tools", {"query": f"tool {CANARIES['argument']}"}))


async def make_key(folder: Path) -> str:
    async with Scout.open(settings=Settings(store=f"sqlite:///{folder / 'catalogue.db'}", embedder="none")) as scout:
        text, _ = await scout.api_keys.create(tenant="local", user="ann")
        return text


@pytest.mark.process
@guarantee("secret:nowhere")
async def test_no_log_record_error_or_repr_of_the_library_holds_one(
    tmp_path: Path, http: FakeHttp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CANARY_ENVIRONMENT", CANARIES["environment"])
    path = write_everything(tmp_path, http)
    config = read_config(path)
    output = io.StringIO()
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.DEBUG, logger="toolscout")
    caplog.set_level(logging.DEBUG, logger="toolscout.events")
    settings = Settings(
        store=f"sqlite:///{tmp_path / 'catalogue.db'}",
        embedder="none",
        audit=str(tmp_path / "audit.jsonl"),
        call_timeout_s=1.0,
    )
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        async with Scout.open(config, settings=settings) as scout:
            output.write(repr(config) + repr(scout.servers.statuses()))
            for name in ("fake__tool0", "web__echo", "gone__x", "nothing"):
                for arguments in ({"text": 1, "x": CANARIES["argument"]}, [CANARIES["argument"]], CANARIES["argument"]):
                    try:
                        await scout.call_tool(name, arguments, caller=Caller(user="ann"))
                    except ToolscoutError as error:
                        output.write(repr(error) + json.dumps(to_wire(error)))
            await scout.discover_tools(f"find {CANARIES['argument']}")
    output.write("".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records))
    absent(output.getvalue().encode() + stored(tmp_path))


@pytest.mark.process
@guarantee("secret:nowhere")
def test_no_verb_prints_one(tmp_path: Path, http: FakeHttp, toolscout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_ENVIRONMENT", CANARIES["environment"])
    monkeypatch.setenv("TOOLSCOUT_AUDIT", str(tmp_path / "audit.jsonl"))
    monkeypatch.setenv("TOOLSCOUT_POLICY", str(tmp_path / "policy.toml"))
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    monkeypatch.setenv("TOOLSCOUT_CALL_TIMEOUT_S", "1")
    config = str(write_everything(tmp_path, http))
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"
    secret = toolscout("keys", "create", "--tenant", "acme", "--store", store, "--json").json["key"]
    output = ""
    for verb in (
        ["index", "--config", config, "--store", store],
        ["doctor", "--config", config, "--store", store],
        [
            "call",
            "fake__tool0",
            "--args",
            json.dumps({"x": CANARIES["argument"]}),
            "--config",
            config,
            "--store",
            store,
        ],
        ["call", "absent__x", "--args", json.dumps({"x": CANARIES["argument"]}), "--config", config, "--store", store],
        ["policy", "check", "--as", "ann", "fake__tool0", "--store", store],
        ["policy", "check"],
        ["keys", "list", "--store", store, "--json"],
        ["keys", "revoke", secret, "--store", store],
        ["keys", "revoke", f"tsk_x_{CANARIES['token']}", "--store", store],
        ["audit", "--json"],
        ["changes", "--store", store],
        ["import", config],
    ):
        ran = toolscout(*verb)
        output += ran.out + ran.err
    absent(output.encode())
    assert secret not in output
    assert secret.split("_", 2)[2] not in output
    absent(stored(tmp_path))
    assert secret.split("_", 2)[2].encode() not in stored(tmp_path)


@guarantee("secret:nowhere")
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:canary@db:5432/x", "postgresql://me:***@db:5432/x"),
        ("postgresql://me:ca@na/ry@db/x?a=1", "postgresql://me:***@db/x?a=1"),
        ("postgresql://db/x?user=me&password=canary&a=1", "postgresql://db/x?user=me&password=***&a=1"),
        ("mongodb+srv://me:canary@db", "mongodb+srv://me:***@db"),
        ("sqlite:///a/b.db", "sqlite:///a/b.db"),
        ("memory:", "memory:"),
    ],
)
def test_the_address_of_a_store_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


@guarantee("secret:nowhere")
def test_a_store_that_cannot_be_named_and_settings_show_no_password(toolscout: Any, tmp_path: Path) -> None:
    settings = Settings(store="postgresql://me:canary@db/x", embedder_key="canary")
    assert "canary" not in repr(settings)
    for verb in (["list"], ["doctor"], ["keys", "list"]):
        ran = toolscout(*verb, "--store", "postgrsql://me:canary@db/x")
        assert ran.code > 0
        assert "canary" not in ran.out + ran.err


@pytest.mark.process
@guarantee("secret:nowhere", "tenant:isolation")
async def test_a_user_with_credentials_of_their_own_has_a_session_of_their_own(tmp_path: Path) -> None:
    server = fake(tmp_path).config
    entry = {
        "command": server.command,
        "args": list(server.args),
        "env": {"WHO": "everyone"},
        "toolscout": {
            "shared": True,
            "users": {"ann": {"env": {"WHO": "ann"}}, "acme/ann": {"env": {"WHO": "ann of acme"}}},
        },
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"fake": entry}}))
    callers = {
        Caller(): "everyone",
        Caller(user="bob"): "everyone",
        Caller(user="ann"): "ann",
        Caller(tenant="acme", user="ann"): "ann of acme",
        Caller(tenant="acme", user="bob"): "everyone",
        Caller(tenant="other", user="ann"): "everyone",
        Caller(user="acme/ann"): "everyone",
        Caller(tenant="acme/ann", user=None): "everyone",
    }
    async with opened(*read_config(tmp_path / "mcp.json").servers) as here:
        for _ in range(2):
            for caller, token in callers.items():
                result = await here.call("fake", "environment", caller=caller)
                assert json.loads(result["content"][0]["text"])["WHO"] == token, caller
        starts = [item for item in (tmp_path / "fake.log").read_text().splitlines() if '"started"' in item]
        assert len(starts) == 3


@guarantee("secret:nowhere", "tenant:isolation")
async def test_the_headers_of_a_user_go_with_that_users_calls_alone(tmp_path: Path, http: FakeHttp) -> None:
    users = {"acme/ann": {"headers": {"Authorization": "Bearer ann"}}}
    entry = {
        "type": "http",
        "url": f"{http.origin}/mcp",
        "headers": {"Authorization": "Bearer everyone"},
        "toolscout": {"private": True, "users": users},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"web": entry}}))
    async with opened(*read_config(tmp_path / "mcp.json").servers) as here:
        for caller in (Caller(), Caller(tenant="acme", user="ann"), Caller(tenant="acme", user="bob")):
            await here.call("web", "echo", caller=caller)
    sent = [headers["authorization"] for headers in http.calls("echo")]
    assert sent == ["Bearer everyone", "Bearer ann", "Bearer everyone"]


SECRET = 's3cr3t-value-of-"ann"-\\x'


@pytest.mark.process
@guarantee("secret:nowhere")
async def test_a_secret_that_a_server_quotes_is_hidden_in_results_errors_and_standard_error(tmp_path: Path) -> None:
    env = {"API_TOKEN": SECRET, "MODE": "production", "DATABASE_URL": "postgres://ada:pa55@db/x"}
    server = fake(tmp_path, "fake", "--api-key", "canary-option", env=env)
    async with opened(server.config) as here:
        result = json.loads((await here.call("fake", "environment"))["content"][0]["text"])
        listed = (await here.call("fake", "arguments"))["content"][0]["text"]
        with pytest.raises(CallError) as caught:
            await here.call("fake", "quote_secret")
        status = here.downstream.servers["fake"].status
    assert result["API_TOKEN"] == "***"
    assert result["MODE"] == "production"
    assert "pa55" not in result["DATABASE_URL"]
    assert "canary-option" not in listed
    assert caught.value.message == "bad ***"
    assert caught.value.details["data"] == {"***": ["***"]}
    assert status.stderr == "logging in with ***\n"


@pytest.mark.process
@guarantee("secret:nowhere")
async def test_a_secret_that_a_server_quotes_when_it_does_not_start_is_hidden() -> None:
    script = """
import json, os, sys
for line in sys.stdin:
    error = {"code": -32050, "message": "bad token " + os.environ["API_TOKEN"]}
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line).get("id"), "error": error}), flush=True)
"""
    config = ServerConfig(
        title="no", transport="stdio", command=sys.executable, args=("-c", script), env={"API_TOKEN": SECRET}
    )
    async with opened(config, ready=False) as here:
        status = (await here.state("no", "failed")).status
        with pytest.raises(CallError) as caught:
            await here.call("no", "x")
    assert "bad token ***" in status.detail
    assert "bad token ***" in caught.value.message


@guarantee("secret:nowhere")
@pytest.mark.parametrize(
    ("fields", "quoted", "shown"),
    [
        ({"headers": {"Authorization": "Bearer abcdefgh1"}}, "got abcdefgh1", "got ***"),
        ({"headers": {"X-Org": "abcdefgh1"}}, "got abcdefgh1", "got abcdefgh1"),
        ({"env": {"SECRET_FILE": "/run/secret/1"}}, "no /run/secret/1", "no /run/secret/1"),
        ({"env": {"PASSWORD": "short"}}, "a short text", "a short text"),
        ({"env": {"AUTHOR": "ann.example"}}, "by ann.example", "by ann.example"),
        ({"env": {"AUTH_METHOD": "password"}}, "no password", "no password"),
        ({"env": {"OAUTH_SCOPES": "repo read:user"}}, "needs read:user", "needs read:user"),
        ({"env": {"SMTP_PASS": "abcdefgh1"}}, "got abcdefgh1", "got ***"),
        ({"env": {"SSH_PASSPHRASE": "abcdefgh1"}}, "got abcdefgh1", "got ***"),
        ({"env": {"GITHUB_PAT": "abcdefgh1"}}, "got abcdefgh1", "got ***"),
        ({"env": {"VAULT_SECRET_ID": "abcdefgh1"}}, "got abcdefgh1", "got ***"),
        ({"url": "https://x.test/mcp?api_key=abcdefgh1"}, "at ?api_key=abcdefgh1", "at ?api_key=***"),
        ({"args": ("--token=abcdefgh1",)}, "--token=abcdefgh1", "--token=***"),
        ({"oauth": OAuthConfig(client_id="me", client_secret="abcdefgh1")}, "abcdefgh1", "***"),
        ({"users": {"ann": UserCredentials(headers={"X-Key": "abcdefgh1"})}}, "abcdefgh1", "***"),
    ],
)
def test_only_what_the_config_names_like_a_secret_is_hidden(fields: Any, quoted: str, shown: str) -> None:
    secrets = QuotedSecrets(ServerConfig(title="x", transport="http", **fields))
    assert secrets.hide_in_text(quoted) == shown
    assert secrets.hide({"a": [quoted, "\ud800"]}) == {"a": [shown, "\ud800"]}
