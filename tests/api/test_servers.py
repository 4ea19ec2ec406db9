"""Operators add, change and remove servers of a running gateway. What they do survives a restart."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from serving import serving
from toolscout import Scout
from waiting import eventually

EITHER = str(Path(__file__).parent.parent / "either_server.py")
WAIT_S = 60.0

pytestmark = pytest.mark.process


@dataclass
class Operator:
    """An operator of a gateway process."""

    http: httpx2.AsyncClient

    async def ask(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        response = await self.http.request(method, f"/api/v1{path}", json=body)
        assert response.status_code == status, response.text
        return response.json()

    async def until_state(self, server: str, state: str) -> None:
        async def reached() -> bool:
            rows = (await self.ask("GET", "/servers"))["servers"]
            return any(row["key"] == server and row["state"] == state for row in rows)

        await eventually(reached, WAIT_S)

    async def until_tools(self, *keys: str) -> None:
        async def listed() -> bool:
            return [tool["key"] for tool in (await self.ask("GET", "/tools"))["tools"]] == list(keys)

        await eventually(listed, WAIT_S)


@asynccontextmanager
async def operating(folder: Path, *options: str) -> AsyncIterator[Operator]:
    """Serve the config of a folder to an operator."""
    async with Scout.open(store=f"sqlite:///{folder / 'catalogue.db'}") as scout:
        key, _ = await scout.api_keys.create(tenant="local", user="olga", scopes=["toolscout:operator"])
    with serving(folder, "--auth", *options) as gateway:
        headers = {"Authorization": f"Bearer {key}"}
        base = gateway.url.removesuffix("/mcp")
        async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=WAIT_S) as http:
            yield Operator(http)


def entry(**more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [EITHER], **more}


async def test_servers_are_added_changed_switched_and_removed_and_stay_so(tmp_path, monkeypatch):
    audit, file = tmp_path / "audit.jsonl", tmp_path / "mcp.json"
    monkeypatch.setenv("TOOLSCOUT_AUDIT", str(audit))
    file.write_text('{\n  // ours\n  "mcpServers": {},\n  "other": 1\n}\n')
    either = ["either__era", "either__greet", "either__stamp"]
    async with operating(tmp_path) as olga:
        body = {"mcpServers": {"either": entry(env={"API_KEY": "sesame-5up3r"})}}
        assert await olga.ask("POST", "/servers", body, status=201) == {"changed": ["either"]}
        await olga.until_tools(*either)
        shown = await olga.ask("GET", "/servers/either")
        assert (shown["state"], shown["tools"], shown["trusted"], shown["source"]) == ("ready", 3, False, str(file))
        assert shown["entry"]["env"] == {"API_KEY": "***"}
        taken = await olga.ask("POST", "/servers", body, status=409)
        assert taken["error"]["code"] == "conflict"

        edited = {**shown["entry"], "toolscout": {"trusted": True, "tags": ["ours"]}}
        await olga.ask("PUT", "/servers/either", {"entry": edited})
        await olga.until_state("either", "ready")

        async def tagged() -> bool:
            tools = (await olga.ask("GET", "/tools"))["tools"]
            return len(tools) == 3 and all("ours" in tool["tags"] for tool in tools)

        await eventually(tagged, WAIT_S)
        called = await olga.ask("POST", "/tools/either__stamp/call", {})
        assert not called["is_error"]

        await olga.ask("POST", "/servers/either/disable")
        await olga.until_tools()
        await olga.until_state("either", "disabled")
        await olga.ask("POST", "/servers/either/enable")
        await olga.until_tools(*either)
        await olga.ask("POST", "/servers/either/restart")
        await olga.ask("POST", "/servers/either/refresh")
        await olga.until_state("either", "ready")
        assert (await olga.ask("GET", "/servers/either/log"))["key"] == "either"

    stored = json.loads(file.read_text().replace("// ours", ""))
    assert stored["other"] == 1
    assert stored["mcpServers"]["either"]["env"] == {"API_KEY": "sesame-5up3r"}
    async with operating(tmp_path) as olga:
        await olga.until_state("either", "ready")
        await olga.ask("DELETE", "/servers/either")
        await olga.until_tools()
        await olga.ask("GET", "/servers/either", status=404)
    assert "// ours" in file.read_text()
    assert "either" not in file.read_text()
    acts = [json.loads(line) for line in audit.read_text().splitlines()]
    by_olga = [(line["act"], line["server"]) for line in acts if line["act"].startswith("servers.")]
    done = ("add", "change", "disable", "enable", "restart", "refresh", "remove")
    assert by_olga == [(f"servers.{name}", "either") for name in done]
    assert all(line["by"].startswith("local/olga key ") for line in acts if line["act"].startswith("servers."))
    assert "sesame" not in audit.read_text()


async def test_an_entry_that_cannot_be_used_changes_nothing(tmp_path):
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"either": entry()}}))
    before = file.read_text()
    async with operating(tmp_path) as olga:
        await olga.until_state("either", "ready")
        for method, path, body, status, code in (
            ("POST", "/servers", {"mcpServers": {"new": {"args": []}}}, 422, "config"),
            ("POST", "/servers", {"mcpServers": {"new": {"url": "ftp://x"}}}, 422, "config"),
            ("POST", "/servers", {"mcpServers": {"new": {"command": "x", "toolscout": 1}}}, 422, "config"),
            ("POST", "/servers", {"mcpServers": {"Either": entry(), "either": entry()}}, 409, "conflict"),
            ("PUT", "/servers/either", {"entry": {"command": ""}}, 422, "config"),
            ("PUT", "/servers/either", {"entry": entry(env={"A": "***"})}, 422, "config"),
            ("PUT", "/servers/nobody", {"entry": entry()}, 404, "unknown_server"),
            ("DELETE", "/servers/nobody", None, 404, "unknown_server"),
        ):
            answer = await olga.ask(method, path, body, status=status)
            assert answer["error"]["code"] == code, (method, path, body)
        assert file.read_text() == before
        await olga.until_tools("either__era", "either__greet", "either__stamp")


async def test_a_gateway_without_a_config_gets_one_in_the_users_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with operating(tmp_path) as olga:
        await olga.ask("POST", "/servers", {"servers": {"either": entry()}}, status=201)
        await olga.until_tools("either__era", "either__greet", "either__stamp")
    (file,) = (tmp_path / "config").rglob("servers.json")
    assert json.loads(file.read_text())["mcpServers"]["either"]["toolscout"] == {"trusted": False}
    assert file.stat().st_mode & 0o077 == 0


async def test_a_file_in_another_format_is_not_edited(tmp_path):
    file = tmp_path / "servers.toml"
    file.write_text(f'[mcp_servers.either]\ncommand = "{sys.executable}"\nargs = ["{EITHER}"]\n')
    before = file.read_text()
    async with operating(tmp_path, "--config", str(file)) as olga:
        await olga.until_state("either", "ready")
        assert (await olga.ask("GET", "/servers/either"))["entry"] is None
        answer = await olga.ask("DELETE", "/servers/either", status=422)
        assert "not JSON" in answer["detail"]
        assert file.read_text() == before
