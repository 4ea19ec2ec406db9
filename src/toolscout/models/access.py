"""How someone shows who they are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it is kept: never its secret, only a digest of it. Times are seconds since the epoch."""

    id: str
    """What a key begins with, after `tsk_`: enough to recognise it by, and no secret."""
    digest: str
    tenant: str
    user: str | None = None
    groups: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    note: str = ""
    created_at: float = 0.0
    expires_at: float | None = None
    last_used_at: float | None = None
    revoked_at: float | None = None

    def usable(self, now: float) -> bool:
        """Tell whether the key is neither expired nor revoked."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
