"""How the gateway authorizes itself at a server: client credentials, or a token kept in a file; never a caller's token.

Token requests and discovery go through the same client as the calls, and so through the same check of addresses. The
SDK's own provider is not used: it holds a lock from request to response, so that one slow call stops all others.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
)

from toolscout.config import OAuthConfig
from toolscout.errors import ServerUnavailableError

_EARLY_S = 30.0
_UNAUTHORIZED = 401

_Flow = AsyncGenerator[httpx2.Request, httpx2.Response]


class GatewayTokenAuth(httpx2.Auth):
    """Puts the gateway's own token on every request, and renews it when it is old or refused."""

    def __init__(self, title: str, url: str, config: OAuthConfig) -> None:
        """Take the server's address and what its config says of authorization."""
        self._title = title
        self._url = url
        self._config = config
        self._endpoint = config.token_url
        self._resource: str | None = None
        self._token: dict[str, Any] = _read_token(config.token_file)

    async def async_auth_flow(self, request: httpx2.Request) -> _Flow:
        """Authorize one request; it is sent again only when it was refused for want of a token."""
        renewed = False
        if self._expired() and self._renewable and self._endpoint:
            await self._keep((yield self._token_request()))
            renewed = True
        self._put(request)
        response = yield request
        if response.status_code != _UNAUTHORIZED or renewed or not self._renewable:
            return
        if self._endpoint is None:
            search = self._find_endpoint(response)
            with suppress(StopAsyncIteration):
                step = await anext(search)
                while True:
                    step = await search.asend((yield step))
        await self._keep((yield self._token_request()))
        self._put(request)
        yield request

    @property
    def _renewable(self) -> bool:
        return bool(self._config.client_id and self._config.client_secret)

    def _expired(self) -> bool:
        return not self._token or time.time() > self._token.get("expires_at", float("inf")) - _EARLY_S

    def _put(self, request: httpx2.Request) -> None:
        if token := self._token.get("access_token"):
            request.headers["Authorization"] = f"Bearer {token}"

    def _token_request(self) -> httpx2.Request:
        form = {"grant_type": "client_credentials"}
        if refresh := self._token.get("refresh_token"):
            form = {"grant_type": "refresh_token", "refresh_token": refresh}
        if self._config.scopes:
            form["scope"] = " ".join(self._config.scopes)
        if self._resource:
            form["resource"] = self._resource
        pair = f"{quote(self._config.client_id, safe='')}:{quote(self._config.client_secret, safe='')}"
        headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        return httpx2.Request("POST", self._endpoint or "", data=form, headers=headers)

    async def _keep(self, response: httpx2.Response) -> None:
        body = _object(await response.aread())
        token = body.get("access_token")
        if response.status_code >= 400 or not isinstance(token, str):
            self._token = {}
            # The body may repeat the client's secret: only the status is said.
            raise ServerUnavailableError(
                f"{self._title} gives no token: the token endpoint answered {response.status_code}",
                hint='check client_id, client_secret and scopes in its "oauth" object',
            )
        self._token = {"refresh_token": self._token.get("refresh_token")} | {
            key: body[key] for key in ("access_token", "refresh_token", "token_type", "scope") if key in body
        }
        if isinstance(body.get("expires_in"), (int, float)):
            self._token["expires_at"] = time.time() + body["expires_in"]
        _write_token(self._config.token_file, self._token)

    async def _find_endpoint(self, refused: httpx2.Response) -> _Flow:
        """Follow the server's metadata to its authorization server, and that one's to the token endpoint."""
        named = extract_resource_metadata_from_www_auth(refused)
        issuer = None
        for url in build_protected_resource_metadata_discovery_urls(named, self._url):
            response = yield httpx2.Request("GET", url)
            found = _object(await response.aread()) if response.status_code == 200 else {}
            servers = found.get("authorization_servers")
            if isinstance(servers, list) and servers:
                issuer = str(servers[0])
                self._resource = str(found.get("resource") or self._url)
                break
        for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, self._url):
            response = yield httpx2.Request("GET", url)
            found = _object(await response.aread()) if response.status_code == 200 else {}
            if isinstance(found.get("token_endpoint"), str):
                self._endpoint = found["token_endpoint"]
                return
        raise ServerUnavailableError(
            f"{self._title} asks for authorization and does not say where", hint="give token_url in its config"
        )


def _read_token(file: str | None) -> dict[str, Any]:
    """Read a stored token: an OAuth answer as JSON, or the bare token."""
    if file is None:
        return {}
    try:
        text = Path(file).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeError):
        return {}
    return _object(text.encode()) or ({"access_token": text} if text and not text.startswith("{") else {})


def _write_token(file: str | None, token: dict[str, Any]) -> None:
    if file is None:
        return
    path = Path(file).expanduser()
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        # Readable by the owner alone from its first moment, and never half written.
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as written:
            json.dump(token, written)
        fresh.replace(path)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
