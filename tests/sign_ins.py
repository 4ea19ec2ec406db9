"""Helpers for tests of signing in: a scout with a server that demands tokens, and a person who signs in to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

from authorization_server import AuthorizationServer
from downstreams import QUICK
from protected_server import ProtectedServer
from toolscout import Scout
from toolscout.config import Config, OAuthConfig, ServerConfig
from toolscout.models import Account, Caller, Scope
from toolscout.scout.accounts import Accounts
from toolscout.settings import Settings

REDIRECT = "http://127.0.0.1:8799/callback"


def protected(server: ProtectedServer, issuer: AuthorizationServer, **fields: Any) -> ServerConfig:
    """Return the config of a server that demands tokens. Both it and its issuer are on loopback."""
    oauth = OAuthConfig(grant_type="authorization_code", issuer=issuer.url, **fields.pop("oauth", {}))
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


@asynccontextmanager
async def desk(config: ServerConfig, folder: Path, **settings: Any) -> AsyncIterator[Desk]:
    """Open a scout over a store in a folder."""
    store = {"store": f"sqlite:///{folder / 'catalogue.db'}", "token_key_file": "", "embedder": "none"}
    chosen: Settings = replace(QUICK, **{**store, **settings})
    async with Scout.open(Config(servers=(config,)), settings=chosen) as scout:
        yield Desk(scout, config)
