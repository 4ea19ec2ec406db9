"""The audit log has one line for every call, however it ends, and for every administrative act."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from downstreams import until
from guarantees import guarantee
from scripted import Call, Scripted, text
from servers import stdio
from serving import write_config
from toolscout import Caller, Scout, SettingError, Settings, ToolscoutError
from toolscout.errors import CallTimeoutError, LimitError, PolicyError
from toolscout.gateway.server import Gateway
from toolscout.models import Scope
from toolscout.policy.policy_file import parse_policy
from toolscout.telemetry import AuditLog, read_audit

DOCS = Path(__file__).parent.parent.parent / "docs"
EITHER = str(Path(__file__).parent.parent / "either_server.py")
ANN = Caller(tenant="local", user="ann", key="ab12cd34ef")

POLICY = """
[[allow]]
who = ["anyone"]

[[deny]]
who = ["anyone"]
may = "call"
tools = ["*forbidden"]

[limits.tools]
"*limited" = { calls_per_minute = 1 }
"""


def server() -> Scripted:
    """Return a server whose tools end in every way."""
    server = Scripted("demo")
    number = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}

    async def hang(_call: Call) -> Mapping[str, Any]:
        await asyncio.Event().wait()
        return text("never")

    async def late(_call: Call) -> Mapping[str, Any]:
        raise CallTimeoutError("too late")

    async def broken(_call: Call) -> Mapping[str, Any]:
        raise RuntimeError("a bug")

    for name in ("fine", "forbidden", "limited"):
        server.tool(name)
    server.tool("failing", {**text("no"), "isError": True})
    server.tool("asking", {"resultType": "input_required", "inputRequests": {}})
    server.tool("counting", inputSchema=number)
    server.tool("hanging", hang)
    server.tool("late", late)
    server.tool("broken", broken)
    return server


@asynccontextmanager
async def audited(path: Path, **settings: Any) -> Any:
    """Open a scout that writes to a file, over the scripted server."""
    behind = server()
    options = Settings(store="memory:", embedder="none", audit=str(path), **settings)
    async with Scout.open(settings=options, servers=[behind]) as scout:
        scout.access.apply_policy(parse_policy(POLICY))
        path.unlink()  # noqa: ASYNC240 - what came before is not the test's
        yield scout, behind


def lines(path: Path) -> list[dict[str, Any]]:
    return list(read_audit(path)) if path.exists() else []


ENDINGS = [
    ("demo__fine", {}, {}, "ok", "allowed"),
    ("demo__failing", {}, {}, "tool_error", "allowed"),
    ("demo__asking", {}, {}, "input_required", "allowed"),
    ("demo__absent", {}, {}, "tool_not_found", "refused"),
    ("no key at all", {}, {}, "tool_not_found", "refused"),
    ("demo__forbidden", {}, {}, "not_allowed", "refused"),
    ("demo__counting", {}, {}, "invalid_arguments", "allowed"),
    ("demo__counting", "[", {}, "invalid_arguments", "allowed"),
    ("demo__fine", {}, {"version": "0" * 12}, "definition_changed", "refused"),
    ("demo__fine", {}, {"read_only": True}, "not_read_only", "refused"),
    ("demo__late", {}, {}, "call_timeout", "allowed"),
    ("demo__broken", {}, {}, "error", "allowed"),
]


@guarantee("audit:every-call")
@pytest.mark.parametrize(("key", "arguments", "options", "outcome", "decision"), ENDINGS)
async def test_a_call_leaves_exactly_one_line_however_it_ends(
    tmp_path: Path, key: str, arguments: Any, options: dict[str, Any], outcome: str, decision: str
) -> None:
    path = tmp_path / "audit.jsonl"
    async with audited(path) as (scout, _):
        with suppress(ToolscoutError, RuntimeError):
            await scout.call_tool(key, arguments, caller=ANN, **options)
        (line,) = lines(path)
    assert (line["act"], line["tool"], line["outcome"], line["decision"]) == ("call", key, outcome, decision)
    assert (line["tenant"], line["user"], line["key_id"]) == ("local", "ann", "ab12cd34ef")
    assert (line["fingerprint"] is None) == (outcome == "tool_not_found")
    assert line["ms"] >= 0


@guarantee("audit:every-call")
async def test_a_cancelled_a_limited_and_an_unreachable_call_leave_one_line_each(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with audited(path) as (scout, behind):
        running = asyncio.create_task(scout.call_tool("demo__hanging", {}, caller=ANN))
        await until(lambda: bool(behind.calls))
        assert lines(path) == []
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await scout.call_tool("demo__limited", {}, caller=ANN)
        with pytest.raises(LimitError):
            await scout.call_tool("demo__limited", {}, caller=ANN)
        behind.state = "failed"
        with pytest.raises(ToolscoutError):
            await scout.call_tool("demo__fine", {}, caller=ANN)
    assert [line["outcome"] for line in lines(path)] == ["cancelled", "ok", "limit_reached", "server_unavailable"]


@guarantee("audit:every-call")
async def test_a_line_holds_the_shape_of_the_arguments_and_no_value(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with audited(path) as (scout, _):
        arguments = {"count": 3, "canary-name": "canary-value", "deep": {"canary": ["canary"]}}
        await scout.call_tool("demo__counting", arguments, caller=ANN)
    (line,) = lines(path)
    assert line["arguments"] == {"count": "number", "\u2026": "2 more"}
    assert "canary" not in path.read_text()


@guarantee("audit:every-call")
@pytest.mark.parametrize("surface", ["compact", "registry", "all"])
async def test_every_call_through_the_gateway_leaves_one_line(tmp_path: Path, surface: str) -> None:
    path = tmp_path / "audit.jsonl"
    keys = ("demo__fine", "demo__failing", "demo__absent", "demo__forbidden")
    direct: list[tuple[str, dict[str, Any]]] = [(key, {}) for key in keys]
    filters = {
        "compact": [("call_tool", {"name": key, "arguments": {}}) for key, _ in direct]
        + [("call_read_tool", {"name": "demo__fine", "arguments": {}}), ("call_tool", {"name": "demo__counting"})],
        "registry": [("execute_tool", {"name": key, "arguments": {}}) for key, _ in direct]
        + [("invoke_mcp_tool", {"server_name": "demo", "tool_name": "fine", "arguments": {}})],
        "all": [*direct, ("demo__counting", {"count": "x"})],
    }[surface]
    async with audited(path) as (scout, _):
        gateway = Gateway(scout, settings=Settings(), surface=surface)
        async with gateway.running(), Client(gateway.server) as client:
            await client.list_tools()
            for number, (name, arguments) in enumerate(filters, start=1):
                with suppress(MCPError):
                    await client.call_tool(name, arguments)
                assert len(lines(path)) == number, (name, arguments)
    outcomes = [line["outcome"] for line in lines(path)]
    assert outcomes[:4] == ["ok", "tool_error", "tool_not_found", "not_allowed"]


@pytest.mark.process
@guarantee("audit:every-call")
def test_the_command_writes_its_calls_and_acts_to_the_users_own_file(
    toolscout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    config = str(write_config(tmp_path, stdio("either", sys.executable, EITHER)))
    for arguments in (["either__era"], ["either__nothing"], ["either__era", "--args", "[1]"]):
        toolscout("call", *arguments, "--config", config)
    made = toolscout("keys", "create", "--tenant", "acme", "--json").json
    toolscout("keys", "revoke", made["id"])
    toolscout("disable", "either__era")
    toolscout("enable", "either__era")
    toolscout("approve", "either__era")
    toolscout("approve", "--keep-out", "either__era")
    path = tmp_path / "data" / "toolscout" / "audit.jsonl"
    assert [(line["act"], line.get("outcome")) for line in lines(path)] == [
        ("call", "ok"),
        ("call", "tool_not_found"),
        ("call", "invalid_arguments"),
        ("keys.create", None),
        ("keys.revoke", None),
        ("tools.disable", None),
        ("tools.enable", None),
        ("definitions.approve", None),
        ("definitions.keep_out", None),
    ]
    assert all(line["by"] for line in lines(path) if line["act"] != "call")
    assert path.stat().st_mode & 0o777 == 0o600


@guarantee("audit:every-call")
async def test_the_library_writes_a_file_only_if_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    async with Scout.open(tools=[{"name": "x"}], settings=Settings(store="memory:", embedder="none")) as scout:
        with pytest.raises(ToolscoutError):
            await scout.call_tool("local__x", {})
        await scout.api_keys.create(tenant="acme")
    assert [*tmp_path.rglob("*")] == []  # noqa: ASYNC240 - nothing else runs


@guarantee("audit:every-call")
def test_no_file_is_written_if_the_setting_is_none(toolscout: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("TOOLSCOUT_AUDIT", "none")
    assert toolscout("keys", "create", "--tenant", "acme").code == 0
    assert not list(tmp_path.rglob("audit*"))


@guarantee("audit:every-call")
def test_an_unwritable_file_is_an_error_before_anything_is_done(
    toolscout: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOOLSCOUT_AUDIT", str(tmp_path / "file" / "audit.jsonl"))
    store = f"sqlite:///{tmp_path / 'catalogue.db'}"
    ran = toolscout("keys", "create", "--tenant", "acme", "--store", store)
    assert (ran.code, "TOOLSCOUT_AUDIT" in ran.err) == (2, True)
    assert not (tmp_path / "catalogue.db").exists()
    with pytest.raises(SettingError):
        AuditLog(tmp_path / "file" / "x").check()


@guarantee("audit:every-call")
def test_a_log_that_fails_later_is_reported_and_stops_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    AuditLog(tmp_path / "file" / "audit.jsonl").write("call", tool="x")
    assert "cannot be written" in caplog.text


@guarantee("audit:every-call")
async def test_the_acts_of_operators_are_written_down(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with audited(path) as (scout, _):
        scout.access.apply_policy(None)
        await scout.decisions.decide(Scope(), ["demo__fine"], "approved")
        await scout.set_enabled("demo__fine", False)
        await scout.remove_server("demo")
        await scout.remove_user("ann")
    assert [line["act"] for line in lines(path)] == [
        "policy.apply",
        "definitions.approve",
        "tools.disable",
        "catalogue.remove",
        "catalogue.remove",
    ]


HOSTILE = 'x__\n{"act":"call","outcome":"ok"}\r\n\x1b[31mred\x1b]0;t\x07\u2028\x85\u202e'


@guarantee("audit:injection")
async def test_newlines_and_escapes_in_names_stay_inside_their_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    hostile = Caller(tenant=HOSTILE, user=HOSTILE, key=HOSTILE)
    async with audited(path) as (scout, _):
        for caller in (ANN, hostile, replace(ANN, key="\udcff")):
            with pytest.raises(ToolscoutError):
                await scout.call_tool(HOSTILE, {HOSTILE: HOSTILE}, caller=caller)
        AuditLog.at(str(path), 0).write_act(HOSTILE, hostile.scope, tool=HOSTILE)
    data = path.read_bytes()
    assert data.count(b"\n") == 4 == len(lines(path))
    assert not [byte for byte in data if byte not in b"\n" and not 32 <= byte < 127]
    assert lines(path)[0]["tool"] == HOSTILE
    assert [line["act"] for line in lines(path)] == ["call", "call", "call", HOSTILE]


@guarantee("audit:injection")
def test_the_command_shows_them_harmless(toolscout: Any, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log.write("call", tenant=HOSTILE, user=HOSTILE, tool=HOSTILE, outcome=HOSTILE, ms=1.0)
    log.write(HOSTILE, by=HOSTILE)
    ran = toolscout("audit", "--file", str(path))
    assert (ran.code, len(ran.out.strip("\n").split("\n"))) == (0, 2)
    assert not [char for char in ran.out if char in "\x1b\x07\x85\u2028\u202e\r"]


@guarantee("audit:injection")
def test_the_command_shows_which_policy_came_into_force_and_why_one_was_refused(toolscout: Any, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log.write("policy.apply", by="root", source="policy.toml")
    log.write("policy.refuse", by="root", reason="policy.toml: allow 1 has no who" + HOSTILE)
    applied, refused = toolscout("audit", "--file", str(path)).out.strip("\n").split("\n")
    assert "policy.apply  policy.toml   by root" in applied
    assert "policy.refuse     by root: policy.toml: allow 1 has no who" in refused


@guarantee("audit:every-call")
def test_the_log_is_filtered_by_tenant_user_tool_outcome_act_and_time(
    toolscout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    for number in range(6):
        who = {"tenant": "acme" if number % 2 else "local", "user": f"u{number % 3}"}
        log.write("call", **who, tool=f"bank__t{number}", outcome="ok" if number < 4 else "not_allowed")
    log.write("keys.create", tenant="acme", user=None)
    old = {"at": "2020-01-01T00:00:00.000+00:00", "act": "call", "tool": "bank__old"}
    path.write_text(json.dumps(old) + "\n" + "{torn\n" + path.read_text())

    def asked(*options: str) -> list[str]:
        ran = toolscout("audit", "--file", str(path), "--json", *options)
        return [line.get("tool") or line["act"] for line in ran.json["lines"]]

    assert len(asked()) == 8
    assert asked("--tenant", "acme") == ["bank__t1", "bank__t3", "bank__t5", "keys.create"]
    assert asked("--user", "u0", "--outcome", "ok") == ["bank__t0", "bank__t3"]
    assert asked("--tool", "*_t[45]") == ["bank__t4", "bank__t5"]
    assert asked("--act", "keys.*") == ["keys.create"]
    assert asked("--since", "1h", "--limit", "2") == ["bank__t5", "keys.create"]
    assert "bank__old" not in asked("--since", "2021-01-01")
    assert toolscout("audit", "--file", str(path), "--user", "nobody").code == 1
    assert toolscout("audit", "--file", str(path), "--since", "yesterday").code == 2
    assert toolscout("audit", "--file", str(tmp_path / "none")).code == 2
    monkeypatch.setenv("TOOLSCOUT_AUDIT", str(tmp_path / "none"))
    ran = toolscout("audit")
    assert (ran.code, ran.out) == (1, f"there is no audit log at {tmp_path / 'none'}: the first call creates it\n")
    assert (toolscout("audit", "--json").code, toolscout("audit", "--json").json) == (1, {"lines": []})


@guarantee("audit:every-call")
async def test_every_field_and_act_is_documented(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with audited(path) as (scout, _):
        await scout.call_tool("demo__fine", {}, caller=ANN)
        _, key = await scout.api_keys.create(tenant="acme", user="ann")
        await scout.api_keys.revoke(key.id)
        scout.access.apply_policy(None)
        for verdict in ("approved", "kept_out"):
            await scout.decisions.decide(Scope(), ["demo__fine"], verdict)
        for enabled in (False, True):
            await scout.set_enabled("demo__fine", enabled)
        await scout.remove_server("demo")
        scout.access.refuse_policy(PolicyError("broken"))
    page = (DOCS / "audit.md").read_text("utf-8")
    for line in lines(path):
        assert f"| `{line['act']}` |" in page, line["act"]
        for field in line:
            assert f"| `{field}` |" in page, field
    outcomes = {"ok", "tool_error", "input_required", "cancelled", "error", *(item[3] for item in ENDINGS)}
    for outcome in outcomes:
        assert f"`{outcome}`" in page, outcome
    fields = set(re.findall(r"^\| `([a-z_]+)` \|", page.split("## Acts")[0], re.M))
    of_audit_lost = {"lines"}  # tests/security/test_audit_files.py, with a full disk
    assert fields == {field for line in lines(path) for field in line} | of_audit_lost
