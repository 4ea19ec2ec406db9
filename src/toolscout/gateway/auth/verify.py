"""From a bearer token to a Caller, by the SDK's own machinery: this is what its middleware asks."""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from mcp.server.auth.provider import AccessToken

from toolscout.errors import AuthError, ToolscoutError
from toolscout.gateway.auth.tokens import Tokens
from toolscout.gateway.identity import CALLER
from toolscout.models import ApiKey, Caller
from toolscout.policy.keys import caller_of_key, opens, split_token

_log = logging.getLogger("toolscout")
_KEY_TTL_S = 1.0
_REMEMBERED_KEYS = 4_096

FindKey = Callable[[str], Awaitable[ApiKey | None]]
"""How a key is looked up by its id; it is told each time that the key was used."""


class Verifier:
    """The SDK's TokenVerifier. A key that was looked up is good for a second, so that a revoked one is soon refused."""

    def __init__(
        self,
        find_key: FindKey,
        tokens: Tokens | None,
        *,
        audience: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Verify keys, and tokens where there is an issuer; `audience` is what the SDK holds a token against."""
        self._find_key = find_key
        self._tokens = tokens
        self._audience = audience
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, ApiKey | None]] = OrderedDict()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the token is good for, or None; nothing that is wrong with it is told to whoever sent it."""
        try:
            if token.startswith("tsk_"):
                return await self._key(token)
            if self._tokens is not None:
                caller, said = await self._tokens.verify(token)
                client = str(said.get("azp") or said.get("client_id") or "")
                return self._access(caller, client=client, issuer=self._tokens.issuer)
        except AuthError as error:
            _log.info("a token was refused: %s", error.message)
        except ToolscoutError as error:
            _log.warning("a token cannot be verified now, so it is refused: %s", error.message)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with a token, it opens nothing
            _log.warning("a token could not be read, so it is refused: %s", type(error).__name__)
        return None

    async def _key(self, token: str) -> AccessToken | None:
        parts = split_token(token)
        key = await self._lookup(parts[0]) if parts else None
        if parts is None or key is None or not opens(key, parts[1], time.time()):
            return None
        return self._access(caller_of_key(key), client=f"key:{key.id}", issuer="toolscout")

    async def _lookup(self, number: str) -> ApiKey | None:
        known = self._known.get(number)
        now = self._clock()
        if known is not None and now - known[0] < _KEY_TTL_S:
            return known[1]
        key = await self._find_key(number)
        self._known[number] = now, key
        self._known.move_to_end(number)
        while len(self._known) > _REMEMBERED_KEYS:
            self._known.popitem(last=False)
        return key

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
