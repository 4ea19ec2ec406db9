"""From what a token says to a Caller: pure, by the operator's own mapping, and never by a default that lets in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolscout.errors import AuthError
from toolscout.models import LOCAL, Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMap:
    """Which claim says what; a dotted name goes into nested objects, as in `realm_access.roles`."""

    tenant: str = ""
    """The claim that names the tenant; empty where all tokens are of one tenant, the local one."""
    user: str = "sub"
    groups: str = "groups"
    scopes: str = "scope"


def caller_of(claims: Mapping[str, Any], names: ClaimMap) -> Caller:
    """Return who a token speaks for; raise AuthError where it does not say so plainly."""
    user = _text(claims, names.user)
    tenant = _text(claims, names.tenant) if names.tenant else LOCAL
    return Caller(
        tenant=tenant,
        user=user,
        groups=frozenset(_texts(claims, names.groups)),
        scopes=frozenset(_texts(claims, names.scopes)),
    )


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = _claim(claims, name)
    if not isinstance(value, str) or not value.strip():
        raise AuthError(f"the token has no text in the claim {name!r}", hint="the issuer must send it, or map another")
    return value


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    value = _claim(claims, name)
    if isinstance(value, str):
        return value.split()
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    if name in claims:  # an address such as https://example.com/groups is one name, dots and all
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
