"""Turns the claims of a token into a Caller, by the operator's mapping. A missing claim never grants access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolscout.errors import AuthError
from toolscout.models import LOCAL, Caller

_LONGEST = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMap:
    """The names of the claims to read. A dotted name means nested objects, as in `realm_access.roles`."""

    tenant: str = ""
    """The claim that names the tenant. If it is empty, all tokens belong to the local tenant."""
    user: str = "sub"
    groups: str = "groups"
    scopes: str = "scope"


def caller_from_claims(claims: Mapping[str, Any], names: ClaimMap) -> Caller:
    """Return the caller that a token identifies. Raise AuthError if it names no user or tenant."""
    user = _text(claims, names.user)
    tenant = _text(claims, names.tenant) if names.tenant else LOCAL
    return Caller(
        tenant=tenant,
        user=user,
        groups=frozenset(_texts(claims, names.groups)),
        scopes=frozenset(_texts(claims, names.scopes)),
    )


def is_name(text: str) -> bool:
    """Tell whether a text can name a tenant, a user, a group or a scope: it must be short and printable."""
    return len(text.strip()) > 0 and len(text) <= _LONGEST and text.isprintable()


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = _claim(claims, name)
    if not isinstance(value, str) or not is_name(value):
        raise AuthError(
            f"the token has no usable name in the claim {name!r}",
            hint="make the issuer send this claim, or configure another one",
        )
    return value


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    value = _claim(claims, name)
    items = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str) and is_name(item)]


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    if name in claims:  # a claim such as https://example.com/groups has dots in its name
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
