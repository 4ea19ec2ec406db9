"""From what a token says to a Caller: pure, by the operator's own mapping, and never by a default that lets in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolscout.errors import AuthError
from toolscout.models import LOCAL, Caller

_LONGEST = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMap:
    """Which claim says what; a dotted name goes into nested objects, as in `realm_access.roles`."""

    tenant: str = ""
    """The claim that names the tenant; empty where all tokens are of one tenant, the local one."""
    user: str = "sub"
    groups: str = "groups"
    scopes: str = "scope"


def caller_from_claims(claims: Mapping[str, Any], names: ClaimMap) -> Caller:
    """Return who a token speaks for; raise AuthError where it does not say so plainly."""
    user = _text(claims, names.user)
    tenant = _text(claims, names.tenant) if names.tenant else LOCAL
    return Caller(
        tenant=tenant,
        user=user,
        groups=frozenset(_texts(claims, names.groups)),
        scopes=frozenset(_texts(claims, names.scopes)),
    )


def is_name(text: str) -> bool:
    """Tell whether a text can name a tenant, a user, a group or a scope: it is short, and all of it can be seen."""
    return len(text.strip()) > 0 and len(text) <= _LONGEST and text.isprintable()


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = _claim(claims, name)
    if not isinstance(value, str) or not is_name(value):
        raise AuthError(f"the token has no name in the claim {name!r}", hint="the issuer must send it, or map another")
    return value


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    value = _claim(claims, name)
    found = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    return [item for item in found if isinstance(item, str) and is_name(item)]


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    if name in claims:  # an address such as https://example.com/groups is one name, dots and all
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
