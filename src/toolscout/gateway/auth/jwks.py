"""The public keys of an issuer (JWKS): fetched on demand and cached, with limits on their size and on requests."""

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
from toolscout.loopback import is_loopback

TTL_S = 600.0
"""The age at which keys are fetched again."""

PAUSE_S = 10.0
"""The shortest time between two requests to the issuer, successful or not."""

_TIMEOUT_S = 5.0
_MAX_BYTES = 262_144
_MAX_KEYS = 100
_log = logging.getLogger("toolscout")


class KeySet:
    """The keys at an address, by id. An unknown id causes another fetch, but at most one per PAUSE_S."""

    def __init__(self, url: str, *, issuer: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        """Take the address of a JWKS. If it is empty, the address comes from the issuer's metadata."""
        self._url = url
        self._issuer = issuer
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = self._attempted_at = float("-inf")
        self._lock = asyncio.Lock()
        self._refresh_task: asyncio.Task[None] | None = None
        self.version = 0
        """A number that grows each time the keys are fetched."""

    async def key(self, kid: str | None) -> jwt.PyJWK:
        """Return a key by its id. Without an id, return the only key, if there is exactly one.

        A cached key is returned at once. Keys older than TTL_S are fetched again in the background.
        """
        key = self._find(kid)
        if key is None:
            await self._refresh()
            key = self._find(kid)
        elif self._clock() - self._fetched_at > TTL_S and (self._refresh_task is None or self._refresh_task.done()):
            self._refresh_task = asyncio.create_task(self._refresh())
        if key is None:
            raise AuthError("the token is signed with a key that its issuer does not publish")
        return key

    def _find(self, kid: str | None) -> jwt.PyJWK | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    async def _refresh(self) -> None:
        """Fetch the keys, unless PAUSE_S has not passed since the last attempt. On failure, keep the cached keys."""
        async with self._lock:
            if self._clock() - self._attempted_at <= PAUSE_S:
                return
            self._attempted_at = self._clock()
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
                _log.warning("the keys of the token issuer cannot be fetched: %s", type(error).__name__)
            else:
                self._fetched_at = self._clock()
                self.version += 1

    async def _fetch(self) -> dict[str, jwt.PyJWK]:
        async with httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
            if not self._url:
                metadata = await read_metadata(client, self._issuer)
                self._url = _require_safe(str(metadata["jwks_uri"]))
            document = await _read(client, self._url)
        usable = [item for item in document["keys"] if _is_signing_key(item)]
        key_set = jwt.PyJWKSet.from_dict({"keys": usable[:_MAX_KEYS]})
        return {key.key_id or "": key for key in key_set.keys}


def is_safe(url: str) -> bool:
    """Tell whether nobody can replace keys in transit: the address uses TLS, or is on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def _require_safe(url: str) -> str:
    if not is_safe(url):
        raise ValueError("the keys are not published over https")
    return url


async def read_metadata(client: httpx2.AsyncClient, issuer: str) -> dict[str, Any]:
    """Return the metadata of an issuer. Raise ValueError if they belong to another one."""
    metadata = await _read(client, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if metadata.get("issuer") != issuer:
        raise ValueError("the metadata belongs to another issuer")
    return metadata


def _is_signing_key(item: Any) -> bool:
    """Tell whether a key is a public key for signatures. A shared secret is never accepted."""
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
