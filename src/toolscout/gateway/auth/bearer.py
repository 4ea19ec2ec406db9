"""From a bearer token to a Caller, by the SDK's own machinery: this is what its middleware asks."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable

from mcp.server.auth.provider import AccessToken
from starlette.authentication import AuthenticationError

from toolscout.errors import AuthError, StoreError, ToolscoutError
from toolscout.gateway.auth.jwt_tokens import JwtVerifier
from toolscout.gateway.auth.recent import Recent
from toolscout.gateway.denied import note_reason
from toolscout.gateway.identity import CALLER
from toolscout.models import ApiKey, Caller
from toolscout.policy.api_keys import caller_of_key, opens, split_token

_KEY_TTL_S = 1.0
_UNSURE_KEY_TTL_S = 5.0
_TOKEN_TTL_S = 30.0
_REMEMBERED = 4_096

FindKey = Callable[[str], Awaitable[ApiKey | None]]
"""How a key is looked up by its id; it is told each time that the key was used."""


class BearerVerifier:
    """The SDK's TokenVerifier.

    A key that was looked up is good for a second, so that a revoked one is soon refused; while the store fails, what it
    said last of a key stays true. A token that was verified is not computed again for half a minute, as long as it has
    not expired and the issuer's keys are the same.
    """

    def __init__(
        self,
        find_key: FindKey,
        tokens: JwtVerifier | None,
        *,
        audience: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Verify keys, and tokens where there is an issuer; `audience` is what the SDK holds a token against."""
        self._find_key = find_key
        self._tokens = tokens
        self._audience = audience
        self._keys: Recent[ApiKey] = Recent(most=_REMEMBERED, clock=clock)
        self._missing: Recent[None] = Recent(most=_REMEMBERED, clock=clock)
        self._verified: Recent[AccessToken] = Recent(most=_REMEMBERED, clock=clock)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the token is good for, or None; nothing that is wrong with it is told to whoever sent it.

        A key that nobody can look up now is not refused: AuthenticationError is raised, and its cause may be told.
        """
        try:
            if token.startswith("tsk_"):
                return await self._key(token)
            if self._tokens is not None:
                return await self._token(token, self._tokens)
        except AuthError as error:
            note_reason(error.message)
        except StoreError as error:
            note_reason(f"a key cannot be looked up now: {error.message}")
            raise AuthenticationError from StoreError("keys cannot be looked up now", hint="try again in a second")
        except ToolscoutError as error:
            note_reason(f"a token cannot be verified now: {error.message}")
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with a token, it opens nothing
            note_reason(f"a token could not be read: {type(error).__name__}")
        return None

    async def _key(self, token: str) -> AccessToken | None:
        parts = split_token(token)
        key = await self._lookup(parts[0]) if parts else None
        if parts is None or key is None or not opens(key, parts[1], time.time()):
            note_reason(_wrong_with(parts, key))
            return None
        return self._access(caller_of_key(key), client=f"key:{key.id}", issuer="toolscout")

    async def _lookup(self, number: str) -> ApiKey | None:
        if (known := self._keys.get(number) or self._missing.get(number)) is not None:
            return known[0]
        try:
            key, for_s = await self._find_key(number), _KEY_TTL_S
        except StoreError:
            key, for_s = self._keys.last(number), _UNSURE_KEY_TTL_S
            if key is None:
                raise
        if key is None:
            self._keys.drop(number)
            self._missing.put(number, None, for_s)
        else:
            self._keys.put(number, key, for_s)
        return key

    async def _token(self, token: str, tokens: JwtVerifier) -> AccessToken:
        digest = hashlib.sha256(token.encode()).digest()
        if (known := self._verified.get((digest, tokens.keys.version))) is not None:
            return known[0]
        caller, said = await tokens.verify(token)
        access = self._access(caller, client=str(said.get("azp") or said.get("client_id") or ""), issuer=tokens.issuer)
        left_s = float(said["exp"]) - time.time()
        self._verified.put((digest, tokens.keys.version), access, min(left_s, _TOKEN_TTL_S))
        return access

    def _access(self, caller: Caller, *, client: str, issuer: str) -> AccessToken:
        """Write what the SDK keeps of a caller; a session is bound to its `client_id`, issuer and subject."""
        return AccessToken(
            token="",  # it is not needed any more, and what is not kept goes nowhere
            client_id=json.dumps([caller.tenant, client]),
            scopes=sorted(caller.scopes),
            resource=self._audience or None,
            subject=caller.user,
            claims={"iss": issuer, CALLER: caller},
        )


def _wrong_with(parts: tuple[str, str] | None, key: ApiKey | None) -> str:
    """Say for the log why a key does not open; its id is no secret."""
    if parts is None:
        return "what it showed has not the form of a key"
    if key is None:
        return f"no key has the id {parts[0]}"
    if key.revoked_at is not None:
        return f"the key {key.id} was revoked"
    return f"the secret of the key {key.id} is wrong" if key.usable(time.time()) else f"the key {key.id} has expired"
