"""Sign-in of people at the issuer whose tokens the gateway accepts: an authorization code with PKCE (RFC 9700)."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
from cachetools import TTLCache

from toolscout.errors import SignInError
from toolscout.gateway.auth.jwks import is_safe, read_metadata
from toolscout.settings import Settings

_TIMEOUT_S = 10.0
_KEPT_S = 300.0
_MAX_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """A sign-in that waits for the person. Only an answer with its `state` ends it."""

    redirect_uri: str
    state: str
    verifier: str
    link: str = ""

    @property
    def kept(self) -> dict[str, str]:
        """What a sealed cookie of the browser holds of it."""
        return {"state": self.state, "verifier": self.verifier}

    @classmethod
    def of(cls, kept: Mapping[str, Any], redirect_uri: str, answer: Mapping[str, str]) -> PendingLogin | None:
        """Return the sign-in that a cookie holds, or None if the issuer's answer belongs to another one."""
        state = str(kept["state"])
        if not secrets.compare_digest(state.encode(), answer.get("state", "").encode()):
            return None
        return cls(redirect_uri, state, str(kept["verifier"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLogin:
    """What the console is at the issuer."""

    issuer: str
    client_id: str
    client_secret: str
    scope: str
    resource: str
    _kept: TTLCache[str, Mapping[str, str]] = field(
        default_factory=lambda: TTLCache(1, _KEPT_S), init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, settings: Settings) -> CodeLogin | None:
        """Return what the settings say, or None if they name no client."""
        if not settings.auth_issuer or not settings.console_client_id:
            return None
        return cls(
            issuer=settings.auth_issuer,
            client_id=settings.console_client_id,
            client_secret=settings.console_client_secret,
            scope=settings.console_scope or f"{settings.auth_scope} {settings.operator_scope}".strip(),
            resource=settings.auth_audience,
        )

    async def begin(self, redirect_uri: str) -> PendingLogin:
        """Return where the person signs in."""
        async with _client() as client:
            endpoint = (await self._metadata(client))["authorization_endpoint"]
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        parameters = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": redirect_uri,
            "scope": self.scope,
            "resource": self.resource,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        query = urlencode({name: value for name, value in parameters.items() if value})
        link = f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"
        return PendingLogin(redirect_uri=redirect_uri, state=state, verifier=verifier, link=link)

    async def finish(self, pending: PendingLogin, answer: Mapping[str, str]) -> str:
        """Return the access token for the issuer's answer. Its `state` was compared before."""
        if "error" in answer:
            raise SignInError(f"the issuer refuses: {answer['error'][:100]}", hint="begin again, or ask the operator")
        if answer.get("iss", self.issuer) != self.issuer:
            raise SignInError("the answer comes from another issuer", hint="this can be an attack: begin again")
        fields = {
            "grant_type": "authorization_code",
            "code": answer.get("code", ""),
            "redirect_uri": pending.redirect_uri,
            "code_verifier": pending.verifier,
            "client_id": self.client_id,
            "resource": self.resource,
        }
        auth = (quote(self.client_id, ""), quote(self.client_secret, "")) if self.client_secret else None
        async with _client() as client:
            metadata = await self._metadata(client)
            if metadata.get("authorization_response_iss_parameter_supported") and "iss" not in answer:
                raise SignInError("the answer does not name its issuer", hint="this can be an attack: begin again")
            try:
                tokens = await _post(client, metadata["token_endpoint"], fields, auth)
            except (httpx2.HTTPError, ValueError, RecursionError) as error:
                raise _unusable(error) from error
        token, kind = tokens.get("access_token"), str(tokens.get("token_type")).lower()
        if not isinstance(token, str) or kind != "bearer":
            raise SignInError("the issuer gave no token", hint="begin again, or ask the operator")
        return token

    async def _metadata(self, client: httpx2.AsyncClient) -> Mapping[str, str]:
        """Return the issuer's addresses, which must be safe. They are read once in a while, not for every visitor."""
        kept = self._kept.get(self.issuer)
        if kept is not None:
            return kept
        names = ("authorization_endpoint", "token_endpoint")
        try:
            metadata = await read_metadata(client, self.issuer)
            if not all(is_safe(str(metadata.get(name))) for name in names):
                raise ValueError("an address of the issuer does not use https")
        except (httpx2.HTTPError, httpx2.InvalidURL, TypeError, ValueError) as error:
            raise _unusable(error) from error
        self._kept[self.issuer] = metadata
        return metadata


def _client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False)


async def _post(
    client: httpx2.AsyncClient, url: str, fields: Mapping[str, str], auth: tuple[str, str] | None
) -> dict[str, Any]:
    data = {name: value for name, value in fields.items() if value}
    async with client.stream("POST", url, data=data, auth=auth, headers={"Accept": "application/json"}) as response:
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MAX_BYTES:
                raise ValueError("the answer is too long")
    answer = json.loads(body)
    if not isinstance(answer, dict):
        raise ValueError("the answer is not an object")
    if response.status_code != httpx2.codes.OK:
        raise SignInError(f"the issuer refuses: {str(answer.get('error'))[:100]}", hint="begin again")
    return answer


def _unusable(error: Exception) -> SignInError:
    return SignInError(
        f"the issuer cannot be used now: {type(error).__name__}", hint="try again, or sign in with an API key"
    )
