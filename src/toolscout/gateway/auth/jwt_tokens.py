"""Verification of OAuth access tokens: signature, algorithm, issuer, audience and expiry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jwt

from toolscout.errors import AuthError
from toolscout.gateway.auth.jwks import KeySet
from toolscout.models import Caller
from toolscout.policy.claims import ClaimMap, caller_from_claims

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a private key. `none` and shared secrets (HS256, ...) are never accepted."""

_LEEWAY_S = 30
_MAX_CHARS = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtVerifier:
    """Verifies the tokens of one issuer."""

    issuer: str
    audience: str
    keys: KeySet
    claims: ClaimMap
    algorithms: tuple[str, ...] = ALGORITHMS

    async def verify(self, token: str) -> tuple[Caller, dict[str, Any]]:
        """Return the caller of a token and its claims. Raise AuthError if the token is not valid."""
        if len(token) > _MAX_CHARS:
            raise AuthError("the token is too long")
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in self.algorithms:
                raise AuthError("the token is signed with an algorithm that is not accepted")
            kid = header.get("kid")
            key = await self.keys.key(kid if isinstance(kid, str) else None)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(self.algorithms),
                audience=self.audience,
                issuer=self.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as error:
            raise AuthError(f"the token is not valid: {type(error).__name__}") from error
        return caller_from_claims(claims, self.claims), claims
