"""Accounts at servers: who is signed in where, with the tokens that the issuer gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolscout.models.tools import Scope

ACCOUNT_KIND = "account"
"""The kind of record under which a store keeps accounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One sign-in: the tokens of a tenant's user for one server, from one issuer. Times are seconds since the epoch."""

    scope: Scope
    """The tenant, and the user, or no user for an account that all callers share."""
    server: str
    """The slug of the server."""
    issuer: str
    url: str = field(repr=False)
    """The address of the server that the tokens are for. They are sent nowhere else."""
    resource: str | None
    """What the issuer calls the server (RFC 8707)."""
    client: Mapping[str, Any] = field(repr=False)
    """The client that the issuer knows: its id, and its secret if it has one."""
    token_endpoint: str
    revocation_endpoint: str | None = None
    access_token: str = field(default="", repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    granted: str = ""
    """The scopes that were granted."""
    wanted: str = ""
    """Scopes that the server has asked for since. The next sign-in requests them too."""
    expires_at: float | None = None
    renew_at: float | None = None
    """When to renew the token: some time before it expires."""
    signed_in_at: float = 0.0
    refused: str = ""
    """Why the tokens are of no use any more, or "" if they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableAccount:
    """A stored sign-in that cannot be decrypted, for example because its key got lost. It can only be removed."""

    scope: Scope
    server: str
    issuer: str
    reason: str
