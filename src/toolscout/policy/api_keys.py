"""API keys: `tsk_<id>_<secret>`. The secret is shown once and only its digest is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence

from toolscout.errors import InvalidValueError
from toolscout.models import ApiKey, Caller
from toolscout.policy.claims import is_name

KIND = "api_key"
"""The kind of a key among the records of a store."""

_FORM = re.compile(r"tsk_([a-z0-9]{10})_([A-Za-z0-9_-]{43})\Z")
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


def mint_key(
    *,
    tenant: str,
    user: str | None = None,
    groups: Sequence[str] = (),
    scopes: Sequence[str] = (),
    note: str = "",
    now: float,
    expires_at: float | None = None,
) -> tuple[str, ApiKey]:
    """Return a new key as its holder gets it, and as it is kept."""
    for name in (tenant, *(() if user is None else (user,)), *groups, *scopes):
        if not is_name(name):
            raise InvalidValueError(
                f"{name[:80]!r} names no tenant, user, group or scope",
                hint="a name is up to 256 characters that can all be seen",
            )
    number = "".join(secrets.choice(_ALPHABET) for _ in range(10))
    secret = secrets.token_urlsafe(32)
    kept = ApiKey(
        id=number,
        digest=_digest(secret),
        tenant=tenant,
        user=user,
        groups=tuple(groups),
        scopes=tuple(scopes),
        note=note,
        created_at=now,
        expires_at=expires_at,
    )
    return f"tsk_{number}_{secret}", kept


def split_token(token: str) -> tuple[str, str] | None:
    """Return the id and the secret of something that has the form of a key."""
    found = _FORM.match(token)
    return (found[1], found[2]) if found else None


def opens(key: ApiKey, secret: str, now: float) -> bool:
    """Tell whether the secret is the key's, in constant time, and the key still good.

    The secret has 256 bits of chance in it, so a fast digest is as good as a slow one.
    """
    return hmac.compare_digest(key.digest, _digest(secret)) and key.usable(now)


def caller_of_key(key: ApiKey) -> Caller:
    """Return who a key speaks for."""
    return Caller(
        tenant=key.tenant, user=key.user, groups=frozenset(key.groups), scopes=frozenset(key.scopes), key=key.id
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
