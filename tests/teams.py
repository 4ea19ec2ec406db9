"""Helpers for tests of a gateway whose users sign in for themselves: the gateway, and a person's browser."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2

from downstreams import QUICK, WAIT_S
from servers import free_port
from toolscout import Scout
from toolscout.api import RestApi
from toolscout.config import Config, ServerConfig
from toolscout.console.app import Console
from toolscout.gateway.auth.authentication import authentication_for
from toolscout.gateway.host_check import allowed_hosts
from toolscout.gateway.http import make_app
from toolscout.gateway.http_listener import bind, serve_in_background
from toolscout.gateway.server import Gateway
from toolscout.models import Caller
from toolscout.policy.policy_file import parse_policy
from toolscout.ports import LiveServer
from toolscout.scout.accounts import Accounts
from waiting import eventually
from web import client_as

ANN, BOB = Caller(tenant="acme", user="ann"), Caller(tenant="acme", user="bob")


@dataclass
class Team:
    """A gateway for a team."""

    scout: Scout
    url: str

    @property
    def accounts(self) -> Accounts:
        """Return the accounts of the scout."""
        assert self.scout.servers.accounts is not None
        return self.scout.servers.accounts

    @property
    def live(self) -> LiveServer:
        """Return the server `notes`."""
        server = self.scout.servers.get("notes")
        assert server is not None
        return server

    async def key(self, caller: Caller) -> str:
        """Create a key of a user."""
        return (await self.scout.api_keys.create(tenant=caller.tenant, user=caller.user))[0]

    async def call(self, key: str, tool: str, **arguments: Any) -> Any:
        """Call a tool of the gateway as the owner of a key, over MCP."""
        async with client_as(self.url, Authorization=f"Bearer {key}") as (client, _):
            return await client.call_tool(tool, arguments)

    async def who(self, key: str) -> Any:
        """Call `whoami` as the owner of a key, over MCP."""
        result = await self.call(key, "call_tool", name="notes__whoami", arguments={})
        return (result.structured_content or {}).get("sub", result.content)

    async def tools(self, caller: Caller) -> list[str]:
        """Return the tools that a user sees."""
        answer = await self.scout.list_tools(caller=self.scout.narrow(caller))
        return [match.tool.name for match in answer]

    async def until_listed(self, caller: Caller) -> None:
        """Wait until a user sees the tools of the server."""

        async def listed() -> bool:
            return "whoami" in await self.tools(caller)

        await eventually(listed, WAIT_S)


@asynccontextmanager
async def team(
    config: ServerConfig, folder: Path, *others: ServerConfig, policy: str = "", **settings: Any
) -> AsyncIterator[Team]:
    """Run a gateway with servers for the users of all tenants, unless their configs name some."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    store = {"store": f"sqlite:///{folder / 'team.db'}", "public_url": url, "embedder": "none"}
    chosen = replace(QUICK, **{**store, **settings})
    servers = tuple(replace(server, tenants=server.tenants or "all") for server in (config, *others))
    async with Scout.open(settings=chosen) as scout:
        if policy:
            scout.access.apply_policy(parse_policy(policy))
        await scout.connect(Config(servers=servers))
        gateway = Gateway(scout, settings=chosen, authenticated=True)
        authentication = authentication_for(chosen, scout.api_keys.find)
        rest = RestApi(scout, chosen, authenticated=True).behind
        console = Console(scout, chosen, authentication)
        app = make_app(
            gateway,
            chosen,
            allowed_hosts("127.0.0.1", port),
            authentication,
            lambda protect: console.admit(rest(protect)),
            console.routes,
        )
        async with gateway.running(), serve_in_background(app, bind("127.0.0.1", port)):
            yield Team(scout, url)


def found(pattern: str, text: str) -> str:
    """Return the only text that a pattern finds in a page."""
    (one,) = re.findall(pattern, text)
    return str(one)


class Visitor(httpx2.AsyncClient):
    """A person's browser, as far as cookies and redirects go."""

    def __init__(self, team: Team) -> None:
        super().__init__(base_url=team.url, trust_env=False, timeout=30)

    async def begin(self, key: str, server: str = "notes", **headers: str) -> httpx2.Response:
        """Enter a key at the gateway, and return the page that leads to the issuer."""
        form = await self.get(f"/connect/{server}")
        check = found(r'name="check" value="([^"]+)"', form.text)
        return await self.post(f"/connect/{server}", data={"key": key, "check": check}, headers=headers)

    async def sign_in_as_caller(self, server: str = "notes") -> httpx2.Response:
        """Sign in at the issuer that knows the gateway's users, and return the page that leads to the server's."""
        check = found(r'name="check" value="([^"]+)".*\n.*name="login"', (await self.get(f"/connect/{server}")).text)
        page = await self.post(f"/connect/{server}", data={"check": check, "login": "yes"})
        answer = await self.get(found(r'href="([^"]+)"', page.text).replace("&amp;", "&"))
        return await self.get(answer.headers["location"])

    async def callback(self, key: str, server: str = "notes") -> str:
        """Sign in at the issuer, and return the address that it sends the browser to."""
        answer = await self.begin(key, server)
        link = found(r'href="([^"]+)"', answer.text).replace("&amp;", "&")
        return str((await self.get(link)).headers["location"])

    async def sign_in(self, key: str) -> None:
        """Sign in as whom the issuer approves at once."""
        page = await self.get(await self.callback(key))
        assert "You are signed in" in page.text, page.text
