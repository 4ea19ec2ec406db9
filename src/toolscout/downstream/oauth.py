"""OAuth of the gateway at a server: client credentials or a token from a file, never a caller's token.

Token requests and discovery go through the same client as the calls, and so through the same check of addresses. The
SDK's provider is not used: it holds a lock from request to response, so that one slow call blocks all others.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
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
    """Adds the gateway's token to every request, and renews it when it has expired or was refused."""

    def __init__(self, title: str, url: str, config: OAuthConfig) -> None:
        self._title = title
        self._url = url
        self._config = config
        self._endpoint = config.token_url
        self._resource: str | None = None
        self._token: dict[str, Any] = _read_token(config.token_file)

    async def async_auth_flow(self, request: httpx2.Request) -> _Flow:
        """Authorize one request. It is sent again only if the server refused it with 401."""
        renewed = False
        if self._expired() and self._renewable and self._endpoint:
            await self._store((yield self._token_request()))
            renewed = True
        self._authorize(request)
        response = yield request
        if response.status_code != _UNAUTHORIZED or renewed or not self._renewable:
            return
        if self._endpoint is None:
            discovery = self._discover(response)
            with suppress(StopAsyncIteration):
                step = await anext(discovery)
                while True:
                    step = await discovery.asend((yield step))
        await self._store((yield self._token_request()))
        self._authorize(request)
        yield request

    @property
    def _renewable(self) -> bool:
        return bool(self._config.client_id and self._config.client_secret)

    def _expired(self) -> bool:
        return not self._token or time.time() > self._token.get("expires_at", float("inf")) - _EARLY_S

    def _authorize(self, request: httpx2.Request) -> None:
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

    async def _store(self, response: httpx2.Response) -> None:
        body = _json_object(await response.aread())
        token = body.get("access_token")
        if response.status_code >= 400 or not isinstance(token, str):
            self._token = {}
            # The body may repeat the client's secret, so the message gives the status only.
            raise ServerUnavailableError(
                f"no token for {self._title}: the token endpoint answered {response.status_code}",
                hint='check client_id, client_secret and scopes in its "oauth" object',
            )
        self._token = {"refresh_token": self._token.get("refresh_token")} | {
            key: body[key] for key in ("access_token", "refresh_token", "token_type", "scope") if key in body
        }
        if isinstance(body.get("expires_in"), (int, float)):
            self._token["expires_at"] = time.time() + body["expires_in"]
        _write_token(self._config.token_file, self._token)

    async def _discover(self, refused: httpx2.Response) -> _Flow:
        """Find the token endpoint through the metadata of the server and of its authorization server."""
        metadata_url = extract_resource_metadata_from_www_auth(refused)
        issuer = None
        for url in build_protected_resource_metadata_discovery_urls(metadata_url, self._url):
            response = yield httpx2.Request("GET", url)
            metadata = _json_object(await response.aread()) if response.status_code == 200 else {}
            servers = metadata.get("authorization_servers")
            if isinstance(servers, list) and servers:
                issuer = str(servers[0])
                self._resource = str(metadata.get("resource") or self._url)
                break
        for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, self._url):
            response = yield httpx2.Request("GET", url)
            metadata = _json_object(await response.aread()) if response.status_code == 200 else {}
            if isinstance(metadata.get("token_endpoint"), str):
                self._endpoint = metadata["token_endpoint"]
                return
        raise ServerUnavailableError(
            f"{self._title} requires authorization but does not say where to get it", hint="set token_url in its config"
        )


def _read_token(file: str | None) -> dict[str, Any]:
    """Read a stored token: the JSON of an OAuth response, or the bare token."""
    if file is None:
        return {}
    try:
        text = Path(file).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeError):
        return {}
    return _json_object(text.encode()) or ({"access_token": text} if text and not text.startswith("{") else {})


def _write_token(file: str | None, token: dict[str, Any]) -> None:
    if file is None:
        return
    path = Path(file).expanduser()
    with suppress(OSError):
        # A new file that only the owner can read, never a link, renamed into place so that no reader sees half of it.
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w") as stream:
                json.dump(token, stream)
            Path(temporary).replace(path)
        finally:
            Path(temporary).unlink(missing_ok=True)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
