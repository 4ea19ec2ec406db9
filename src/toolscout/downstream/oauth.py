"""OAuth of the gateway at a server: client credentials or a token from a file, never a caller's token.

The token endpoint is found and asked as for people who sign in: the server decides neither what server a token is for,
nor, where the config names the issuer, who gets the client's secret. The SDK's provider is not used: it holds a lock
from request to response, so that one slow call blocks all others.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2

from toolscout.config import OAuthConfig, ServerConfig
from toolscout.downstream.sign_in.issuers import IssuerClient, TokenEndpoint, find_token_endpoint, json_object
from toolscout.downstream.sign_in.token_requests import TokenRefusedError, post_as, read_token, times_of
from toolscout.errors import ServerUnavailableError, SignInError
from toolscout.settings import Settings

_EARLY_S = 30.0
_AFTER_FAILURE_S = 5.0
_UNAUTHORIZED = 401


class GatewayTokenAuth(httpx2.Auth):
    """Adds the gateway's token to every request, and renews it when it has expired or was refused."""

    def __init__(self, config: ServerConfig, oauth: OAuthConfig, settings: Settings) -> None:
        self._config = config
        self._oauth = oauth
        self._settings = settings
        self._endpoint = TokenEndpoint(oauth.token_url) if oauth.token_url else None
        self._token: dict[str, Any] = _read_token(oauth.token_file)
        self._renewing = asyncio.Lock()
        self._failed_at = -_AFTER_FAILURE_S
        self._failure = ""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Authorize one request. It is sent again only if the server refused it with 401."""
        renewed = self._expired() and self._renewable and self._endpoint is not None
        if renewed:
            await self._renew(self._access_token, None)
        sent = self._authorize(request)
        response = yield request
        if response.status_code != _UNAUTHORIZED or renewed or not self._renewable:
            return
        await self._renew(sent, response)
        self._authorize(request)
        yield request

    @property
    def _access_token(self) -> str:
        return str(self._token.get("access_token") or "")

    @property
    def _renewable(self) -> bool:
        return bool(self._oauth.client_id and self._oauth.client_secret)

    def _expired(self) -> bool:
        ends = self._token.get("expires_at")
        return not self._token or (isinstance(ends, int | float) and time.time() > ends - _EARLY_S)

    def _authorize(self, request: httpx2.Request) -> str:
        if token := self._access_token:
            request.headers["Authorization"] = f"Bearer {token}"
        return token

    async def _renew(self, old: str, refusal: httpx2.Response | None) -> None:
        """Get another token than `old`, unless another call has done so. `refusal` may say where to ask for it.

        After a failure, calls fail for a while without another request: they may all have waited for that one.
        """
        async with self._renewing:
            if self._access_token not in ("", old):
                return
            if time.monotonic() - self._failed_at < _AFTER_FAILURE_S:
                raise self._no_token()
            try:
                async with IssuerClient(self._config, self._settings) as client:
                    endpoint = self._endpoint = self._endpoint or await find_token_endpoint(client, refusal)
                    self._token = await self._request(client, endpoint)
            except SignInError as error:
                if isinstance(error, TokenRefusedError):
                    self._token = {}
                self._failed_at, self._failure = time.monotonic(), error.message
                raise self._no_token() from error
            _write_token(self._oauth.token_file, self._token)

    def _no_token(self) -> ServerUnavailableError:
        return ServerUnavailableError(
            f"no token for {self._config.title}: {self._failure}",
            hint='check client_id, client_secret, issuer, token_url and scopes in its "oauth" object',
        )

    async def _request(self, http: IssuerClient, endpoint: TokenEndpoint) -> dict[str, Any]:
        """Ask for a token, and return it as it is kept."""
        form = {"grant_type": "client_credentials"}
        refresh = self._token.get("refresh_token")
        if refresh:
            form = {"grant_type": "refresh_token", "refresh_token": str(refresh)}
        if self._oauth.scopes:
            form["scope"] = " ".join(self._oauth.scopes)
        if endpoint.resource:
            form["resource"] = endpoint.resource
        client = {"client_id": self._oauth.client_id, "token_endpoint_auth_method": endpoint.auth_method}
        given = read_token(http, await post_as(http, client, endpoint.url, form))
        expires_at, _ = times_of(given)
        fields = {
            "access_token": given.access_token,
            "refresh_token": given.refresh_token or refresh,
            "token_type": given.token_type,
            "scope": given.scope,
            "expires_at": expires_at,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _read_token(file: str | None) -> dict[str, Any]:
    """Read a stored token: the JSON of an OAuth response, or the bare token."""
    if file is None:
        return {}
    try:
        text = Path(file).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeError):
        return {}
    return json_object(text.encode()) or ({"access_token": text} if text and not text.startswith("{") else {})


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
