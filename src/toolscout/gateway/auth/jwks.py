"""An issuer's public keys: fetched when they are needed, kept for a while, bounded in size and in how often."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx2
import jwt

from toolscout.errors import AuthError

_TTL_S = 600.0
_PAUSE_S = 10.0
_TIMEOUT_S = 5.0
_MOST_BYTES = 262_144
_MOST_KEYS = 100


class KeySet:
    """The keys at an address, by id. A key that is not there is looked for once more, but not too often."""

    def __init__(self, url: str, *, issuer: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        """Take the address of a JWKS, or leave it to the issuer's own metadata when it is empty."""
        self._url = url
        self._issuer = issuer.rstrip("/")
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = self._tried = float("-inf")
        self._lock = asyncio.Lock()

    async def key(self, kid: str | None) -> jwt.PyJWK:
        """Return a key by its id, or the only one where a token names none."""
        now = self._clock()
        if now - self._fetched > _TTL_S or self._find(kid) is None:
            async with self._lock:
                if self._clock() - self._tried > _PAUSE_S:
                    await self._fetch()
        found = self._find(kid)
        if found is None:
            raise AuthError("the token is signed with a key that its issuer does not publish")
        return found

    def _find(self, kid: str | None) -> jwt.PyJWK | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    async def _fetch(self) -> None:
        """Read the keys; where that fails, those that are known go on being good."""
        self._tried = self._clock()
        try:
            async with httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
                if not self._url:
                    metadata = await _read(client, f"{self._issuer}/.well-known/openid-configuration")
                    self._url = str(metadata["jwks_uri"])
                document = await _read(client, self._url)
            found = jwt.PyJWKSet.from_dict({"keys": list(document["keys"])[:_MOST_KEYS]})
        except (httpx2.HTTPError, httpx2.InvalidURL, jwt.PyJWTError, KeyError, TypeError, ValueError) as error:
            if not self._keys:
                raise AuthError(f"the issuer's keys cannot be read: {type(error).__name__}") from error
            return
        self._keys = {key.key_id or "": key for key in found.keys}
        self._fetched = self._clock()


async def _read(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    async with client.stream("GET", url) as response:
        response.raise_for_status()
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MOST_BYTES:
                raise ValueError("the answer is too long")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise TypeError("the answer is no object")
    return document
