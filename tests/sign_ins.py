"""Helpers for tests of signing in: a scout with a server that demands tokens, and a person who signs in to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

from authorization_server import AuthorizationServer
from downstreams import QUICK, until
from protected_server import ProtectedServer
from toolscout import Scout
from toolscout.config import Config, OAuthConfig, ServerConfig
from toolscout.models import Account, Caller, Scope
from toolscout.scout.accounts import Accounts
from toolscout.settings import Settings

REDIRECT = "http://127.0.0.1:8799/callback"


def protected(server: ProtectedServer, issuer: AuthorizationServer, **fields: Any) -> ServerConfig:
    """Return the config of a server that demands tokens. Both it and its issuer are on loopback."""
    oauth = OAuthConfig(**{"grant_type": "authorization_code", "issuer": issuer.url, **fields.pop("oauth", {})})
    return ServerConfig(title="notes", transport="http", url=server.url, private=True, oauth=oauth, **fields)


async def consent(link: str) -> dict[str, str]:
    """Visit the issuer's page, which approves at once, and return what it sends back to the callback."""
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.get(link)
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


@dataclass
class Desk:
    """A scout with one server, `notes`, and its accounts."""

    scout: Scout
    config: ServerConfig

    @property
    def accounts(self) -> Accounts:
        """Return the accounts of the scout."""
        assert self.scout.servers.accounts is not None
        return self.scout.servers.accounts

    async def sign_in(self, scope: Scope | None = None) -> Account:
        """Sign in with the consent that the issuer gives at once."""
        pending = await self.accounts.begin("notes", self.config, scope or Scope(), REDIRECT)
        return await self.accounts.finish(self.config, pending, await consent(pending.link))

    async def call(self, tool: str = "whoami", caller: Caller | None = None) -> Mapping[str, Any]:
        """Call a tool of the server, and return its structured content."""
        live = self.scout.servers.get("notes")
        assert live is not None
        result = await live.call_tool(tool, {}, caller=caller or Caller())
        assert not result.get("isError"), result
        return dict(result["structuredContent"])


async def ready(here: Desk) -> None:
    """Sign in, and wait until the server is connected."""
    await here.sign_in()
    await until(lambda: here.scout.servers.statuses()[0].state == "ready")


def refreshes(issuer: AuthorizationServer) -> int:
    """Return how often an issuer was asked to renew a token."""
    return issuer.counts().get("token:refresh_token", 0)


async def sign_in_due(here: Desk, caller: Caller) -> Account:
    """Sign in a user whose token is then due for renewal, but still valid."""
    account = replace(await here.sign_in(caller.scope), renew_at=0.0)
    await here.accounts.stored.put(account)
    return account


async def renewing(here: Desk, issuer: AuthorizationServer, caller: Caller) -> asyncio.Task[Mapping[str, Any]]:
    """Begin a call whose token is being renewed. The issuer has done it, and does not answer before `late` is empty."""
    before = refreshes(issuer)
    issuer.switch(late=["token"])
    call = asyncio.create_task(here.call(caller=caller))
    await until(lambda: refreshes(issuer) > before)
    return call


@asynccontextmanager
async def desk(config: ServerConfig, folder: Path, **settings: Any) -> AsyncIterator[Desk]:
    """Open a scout over a store in a folder."""
    store = {"store": f"sqlite:///{folder / 'catalogue.db'}", "token_key_file": "", "embedder": "none"}
    chosen: Settings = replace(QUICK, **{**store, **settings})
    async with Scout.open(Config(servers=(config,)), settings=chosen) as scout:
        yield Desk(scout, config)
