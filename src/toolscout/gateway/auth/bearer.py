"""Verification of bearer tokens, API keys or OAuth access tokens, for the SDK's authentication middleware."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable

from cachetools import LRUCache, TLRUCache, TTLCache
from mcp.server.auth.provider import AccessToken
from starlette.authentication import AuthenticationError

from toolscout.errors import AuthError, StoreError, StoreUnreachableError, ToolscoutError
from toolscout.gateway.auth.jwt_tokens import JwtVerifier
from toolscout.gateway.denied import note_reason
from toolscout.gateway.identity import CALLER
from toolscout.models import ApiKey, Caller
from toolscout.policy.api_keys import caller_of_key, opens, split_token

_KEY_TTL_S = 1.0
_STALE_KEY_TTL_S = 5.0
_TOKEN_TTL_S = 30.0
_CACHE_SIZE = 4_096

FindKey = Callable[[str, str], Awaitable[ApiKey | None]]
"""A function that looks up a key by its id and records that the key was used."""


class BearerVerifier:
    """The SDK's TokenVerifier, with a cache of keys and of verified tokens.

    A key is cached for one second, so a revoked key is refused soon. While a database server cannot be reached, the
    last known key is used. Verified tokens are cached for half a minute, unless they expire earlier or the issuer's
    keys change.
    """

    def __init__(
        self,
        find_key: FindKey,
        tokens: JwtVerifier | None,
        *,
        audience: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Verify API keys, and OAuth tokens if there is an issuer. `audience` is the resource that tokens are for."""
        self._find_key = find_key
        self._tokens = tokens
        self._audience = audience
        self._fresh_keys: TLRUCache[str, tuple[ApiKey, float]] = TLRUCache(_CACHE_SIZE, _expiry, timer=clock)
        self._last_keys: LRUCache[str, ApiKey] = LRUCache(_CACHE_SIZE)
        # A cache of their own: a flood of invented ids must not evict real keys.
        self._unknown_ids: TTLCache[str, bool] = TTLCache(_CACHE_SIZE, _KEY_TTL_S, timer=clock)
        self._verified: TLRUCache[tuple[bytes, int], tuple[AccessToken, float]] = TLRUCache(
            _CACHE_SIZE, _expiry, timer=clock
        )

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access that a token gives, or None. The reason for None is logged and never sent to the client.

        When the store cannot be read, AuthenticationError is raised instead, with a cause that the client may see.
        """
        try:
            if token.startswith("tsk_"):
                return await self._verify_key(token)
            if self._tokens is not None:
                return await self._verify_jwt(token, self._tokens)
        except AuthError as error:
            note_reason(error.message)
        except StoreError as error:
            note_reason(f"a key cannot be looked up now: {error.message}")
            raise AuthenticationError from StoreError("keys cannot be looked up now", hint="try again in a second")
        except ToolscoutError as error:
            note_reason(f"a token cannot be verified now: {error.message}")
        except Exception as error:  # noqa: BLE001 - an unreadable token gives no access
            note_reason(f"a token could not be read: {type(error).__name__}")
        return None

    def asks_store(self, token: str) -> bool:
        """Tell whether a token is a key that has not been valid before, and must be looked up in the store."""
        parts = split_token(token)
        return parts is not None and parts[0] not in self._last_keys

    async def _verify_key(self, token: str) -> AccessToken | None:
        parts = split_token(token)
        key = await self._lookup(*parts) if parts else None
        if parts is None or key is None or not opens(key, parts[1], time.time()):
            note_reason(_refusal_reason(parts, key))
            return None
        return self._access_token(caller_of_key(key), client=f"key:{key.id}", issuer="toolscout")

    async def _lookup(self, key_id: str, secret: str) -> ApiKey | None:
        if (cached := self._fresh_keys.get(key_id)) is not None:
            return cached[0]
        if key_id in self._unknown_ids:
            return None
        try:
            key, ttl_s = await self._find_key(key_id, secret), _KEY_TTL_S
        except StoreUnreachableError:  # of a file that is gone or damaged nothing is known, so no key is accepted
            key, ttl_s = self._last_keys.get(key_id), _STALE_KEY_TTL_S
            if key is None:
                raise
        if key is None:
            self._last_keys.pop(key_id, None)
            self._unknown_ids[key_id] = True
        else:
            self._last_keys[key_id] = key
            self._fresh_keys[key_id] = key, ttl_s
        return key

    async def _verify_jwt(self, token: str, tokens: JwtVerifier) -> AccessToken:
        digest = hashlib.sha256(token.encode()).digest()
        if (cached := self._verified.get((digest, tokens.keys.version))) is not None:
            return cached[0]
        caller, claims = await tokens.verify(token)
        client = str(claims.get("azp") or claims.get("client_id") or "")
        access = self._access_token(caller, client=client, issuer=tokens.issuer)
        ttl_s = min(float(claims["exp"]) - time.time(), _TOKEN_TTL_S)
        self._verified[digest, tokens.keys.version] = access, ttl_s
        return access

    def _access_token(self, caller: Caller, *, client: str, issuer: str) -> AccessToken:
        """Build the SDK's AccessToken of a caller. The SDK binds a session to its `client_id`, issuer and subject."""
        return AccessToken(
            token="",  # no longer needed, and a secret that is not stored cannot leak
            client_id=json.dumps([caller.tenant, client]),
            scopes=sorted(caller.scopes),
            resource=self._audience or None,
            subject=caller.user,
            claims={"iss": issuer, CALLER: caller},
        )


def _expiry(_key: object, value: tuple[object, float], now: float) -> float:
    """Return when a cached value expires. The second part of the value is its time to live."""
    return now + value[1]


def _refusal_reason(parts: tuple[str, str] | None, key: ApiKey | None) -> str:
    """Return why a key is refused, for the log. The id of a key is not a secret."""
    if parts is None:
        return "the key is malformed"
    if key is None:
        return f"no key has the id {parts[0]}"
    if key.revoked_at is not None:
        return f"the key {key.id} was revoked"
    return f"the secret of the key {key.id} is wrong" if key.usable(time.time()) else f"the key {key.id} has expired"
