"""API keys: `tsk_<id>_<secret>`. The secret is shown once, and only its digest is stored."""

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
"""The kind of the records in which a store keeps keys."""

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
    """Make a new key. Return its text, for the user, and its record, for the store."""
    for name in (tenant, *(() if user is None else (user,)), *groups, *scopes):
        if not is_name(name):
            raise InvalidValueError(
                f"{name[:80]!r} cannot be the name of a tenant, user, group or scope",
                hint="use 1 to 256 printable characters",
            )
    key_id = "".join(secrets.choice(_ALPHABET) for _ in range(10))
    secret = secrets.token_urlsafe(32)
    record = ApiKey(
        id=key_id,
        digest=_digest(secret),
        tenant=tenant,
        user=user,
        groups=tuple(groups),
        scopes=tuple(scopes),
        note=note,
        created_at=now,
        expires_at=expires_at,
    )
    return f"tsk_{key_id}_{secret}", record


def split_token(token: str) -> tuple[str, str] | None:
    """Return the id and the secret of a key, or None if the text does not have the form of a key."""
    match = _FORM.match(token)
    return (match[1], match[2]) if match else None


def opens(key: ApiKey, secret: str, now: float) -> bool:
    """Tell, in constant time, whether the secret belongs to the key, and whether the key is still valid.

    The secret has 256 random bits, so a slow digest would add no security.
    """
    return hmac.compare_digest(key.digest, _digest(secret)) and key.usable(now)


def caller_of_key(key: ApiKey) -> Caller:
    """Return the caller that a key identifies."""
    return Caller(
        tenant=key.tenant, user=key.user, groups=frozenset(key.groups), scopes=frozenset(key.scopes), key=key.id
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
