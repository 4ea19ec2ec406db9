"""A gateway with authentication on a local port, in this process, in front of scripted servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from embedders import HashEmbedder
from issuer import AUDIENCE, Issuer
from scripted import Scripted
from toolscout import Scout, Settings
from toolscout.api import RestApi, ServerEditor
from toolscout.config import read_config
from toolscout.gateway.auth.authentication import authentication_for
from toolscout.gateway.host_check import allowed_hosts
from toolscout.gateway.http import make_app
from toolscout.gateway.http_listener import bind, serve_in_background
from toolscout.gateway.server import Gateway
from toolscout.policy.policy_file import Policy
from toolscout.policy.rules import Rules
from toolscout.ports import Store
from toolscout.storage import open_store

MODERN = "2026-07-28"
WAIT_S = 20.0
HANDSHAKE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Counting:
    """A store that records which of its methods are used."""

    def __init__(self, store: Store) -> None:
        self.inner = store
        self.used: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.used.append(name)
        return getattr(self.inner, name)


@dataclass
class Guarded:
    """The gateway that is served, and the parts behind it."""

    url: str
    scout: Scout
    gateway: Gateway
    store: Counting
    clock: Clock
    http: httpx2.AsyncClient
    servers: list[Scripted] = field(default_factory=list)

    async def post(self, token: str | None, message: Any, *, path: str = "", **headers: str) -> httpx2.Response:
        """Send one message as it is."""
        sent = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.post(self.url + path, content=json.dumps(message).encode(), headers=sent)

    async def ask(
        self,
        token: str | None,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        path: str = "",
    ) -> httpx2.Response:
        """Send one request of 2026."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": dict(capabilities or {}),
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": meta}}
        named = {"Mcp_Name": str((params or {})["name"])} if "name" in (params or {}) else {}
        if method == "resources/read":
            named = {"Mcp_Name": str((params or {})["uri"])}
        headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method, **named}
        return await self.post(token, message, path=path, **headers)

    async def told(self, token: str | None, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Send one request of 2026 and return the whole JSON-RPC answer."""
        response = await self.ask(token, method, params, **more)
        return answer_in(response.text)

    async def call(self, token: str, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Call a tool of the surface and return its result."""
        answer = await self.told(token, "tools/call", {"name": tool, "arguments": dict(arguments or {})}, **more)
        return answer["result"]

    async def names(self, token: str) -> list[str]:
        """Return the names of the tools that a caller can list."""
        return [tool["name"] for tool in (await self.told(token, "tools/list"))["result"]["tools"]]

    async def rest(
        self, token: str | None, method: str, path: str, body: Any = None, **headers: str
    ) -> httpx2.Response:
        """Send one request to the REST API, whose paths begin with /api/v1 unless they say otherwise."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        url = self.url.removesuffix("/mcp") + (path if path.startswith("/api/") else f"/api/v1{path}")
        return await self.http.request(method, url, json=body, headers=sent)

    async def operator(self, tenant: str = "acme", user: str = "olga") -> str:
        """Make an API key of an operator."""
        return await self.key(tenant, user, scopes=["toolscout:operator"])

    async def key(self, tenant: str, user: str | None = None, **more: Any) -> str:
        """Make an API key."""
        return (await self.scout.api_keys.create(tenant=tenant, user=user, **more))[0]


def answer_in(text: str) -> Any:
    """Read the last message of an answer, whether it came as JSON or as events."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return json.loads(lines[-1] if lines else text)


@asynccontextmanager
async def guarded(
    servers: Mapping[str, Sequence[Scripted]] | None = None,
    *,
    issuer: Issuer | None = None,
    policy: Policy | None = None,
    surface: str = "compact",
    rest: bool = False,
    config: Path | None = None,
    **settings: Any,
) -> AsyncIterator[Guarded]:
    """Serve these servers, by tenant, to callers with an API key of the store or a token of the issuer.

    Servers can be written over REST to `config`, which is read but not connected.
    """
    options = Settings(**{"store": "memory:", "reindex_interval_s": 0.05, **settings})
    if issuer is not None:
        options = replace(options, auth_issuer=issuer.url, auth_audience=AUDIENCE, auth_tenant_claim="tenant")
    rules, clock = Rules(policy), Clock()
    store = Counting(open_store(options, rules))
    all_servers = list({server.key: server for its in (servers or {}).values() for server in its}.values())
    for server in all_servers:
        server.tenants = tuple(tenant for tenant, its in (servers or {}).items() if server in its)
    async with Scout(
        store=store,
        embedder=HashEmbedder(),
        settings=options,
        rules=rules,
        servers=all_servers,
    ) as scout:
        gateway = Gateway(scout, settings=options, surface=surface, authenticated=True)
        authentication = authentication_for(options, scout.api_keys.find, clock=clock)
        with bind("127.0.0.1", 0) as listening:
            port = listening.getsockname()[1]
            editor = None if config is None else ServerEditor(scout, lambda: [config], config, partial(_read, config))
            api = RestApi(scout, options, authenticated=True, editor=editor).behind if rest else None
            app = make_app(gateway, options, allowed_hosts("127.0.0.1", port), authentication, api)
            async with serve_in_background(app, listening), httpx2.AsyncClient(timeout=WAIT_S) as http:
                yield Guarded(f"http://127.0.0.1:{port}/mcp", scout, gateway, store, clock, http, all_servers)


async def _read(config: Path) -> None:
    await asyncio.to_thread(read_config, [config], partial=True)
