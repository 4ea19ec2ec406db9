"""The public keys of an issuer (JWKS): fetched on demand, cached, bounded in size and in how often they are fetched."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt

from toolscout.errors import AuthError

TTL_S = 600.0
"""How long keys are used before they are fetched again."""

PAUSE_S = 10.0
"""The least time between two requests to the issuer, whatever it answered."""

_TIMEOUT_S = 5.0
_MAX_BYTES = 262_144
_MAX_KEYS = 100
_log = logging.getLogger("toolscout")


class KeySet:
    """The keys at an address, by id. An unknown id causes another fetch, at most one per PAUSE_S."""

    def __init__(self, url: str, *, issuer: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        """Take the address of a JWKS; when it is empty, the issuer's metadata names it."""
        self._url = url
        self._issuer = issuer
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = self._tried = float("-inf")
        self._lock = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None
        self.version = 0
        """Grows each time the keys are fetched."""

    async def key(self, kid: str | None) -> jwt.PyJWK:
        """Return a key by its id, or the only one where a token names none.

        A known key never waits for the issuer: keys older than TTL_S are fetched again in the background.
        """
        key = self._find(kid)
        if key is None:
            await self._renew()
            key = self._find(kid)
        elif self._clock() - self._fetched > TTL_S and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.create_task(self._renew())
        if key is None:
            raise AuthError("the token is signed with a key that its issuer does not publish")
        return key

    def _find(self, kid: str | None) -> jwt.PyJWK | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    async def _renew(self) -> None:
        """Fetch the keys, unless that was done a moment ago; when it fails, the known keys stay in use."""
        async with self._lock:
            if self._clock() - self._tried <= PAUSE_S:
                return
            self._tried = self._clock()
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    self._keys = await self._fetch()
            except (
                httpx2.HTTPError,
                httpx2.InvalidURL,
                jwt.PyJWTError,
                KeyError,
                TypeError,
                ValueError,
                OSError,
            ) as error:
                _log.warning("the keys of the issuer cannot be read now: %s", type(error).__name__)
            else:
                self._fetched = self._clock()
                self.version += 1

    async def _fetch(self) -> dict[str, jwt.PyJWK]:
        async with httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
            if not self._url:
                metadata = await _read(client, f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
                if metadata.get("issuer") != self._issuer:
                    raise ValueError("the metadata is another issuer's")
                self._url = _checked(str(metadata["jwks_uri"]))
            document = await _read(client, self._url)
        key_set = jwt.PyJWKSet.from_dict({"keys": [item for item in document["keys"] if _signs(item)][:_MAX_KEYS]})
        return {key.key_id or "": key for key in key_set.keys}


def is_safe(url: str) -> bool:
    """Tell whether keys from this address cannot be replaced on the way: TLS, or this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost"))


def _checked(url: str) -> str:
    if not is_safe(url):
        raise ValueError("the keys are not published over https")
    return url


def _signs(item: Any) -> bool:
    """Tell whether a key is a public key for signatures; a shared secret is never accepted."""
    return isinstance(item, dict) and item.get("kty") in ("RSA", "EC", "OKP") and item.get("use", "sig") == "sig"


async def _read(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    async with client.stream("GET", url) as response:
        response.raise_for_status()
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MAX_BYTES:
                raise ValueError("the answer is too long")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise TypeError("the answer is not an object")
    return document
