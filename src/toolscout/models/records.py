"""How someone shows who they are, what is remembered of tools, and how a store keeps either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolscout.models.catalogue import Finding
from toolscout.models.tools import Scope


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


Verdict = Literal["seen", "approved", "kept_out"]
"""What was decided of a definition: taken as it came first, approved by hand, or kept out by hand."""

KEPT_OUT = "kept out by hand"
"""The quarantine reason of a tool that an operator keeps out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The definition of a tool that everything later is held against."""

    key: str
    fingerprint: str
    verdict: Verdict = "seen"
    at: float = 0.0
    before: Mapping[str, Any] | None = None
    """The pinned definition itself, kept from when another was offered, so that the two can be shown side by side."""
    screened: str = ""
    """Which definition was screened last, by which rules."""
    found: str = ""
    """What the screen found in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A tool whose definition is not the pinned one, or that is kept from everyone."""

    key: str
    scope: Scope
    quarantine_reason: str
    """Why it is kept from everyone; empty where it is in use."""
    changed: bool
    """Whether the definition is another than the one that was approved, or seen first."""
    verdict: Verdict
    """What was decided of it last."""
    before: Mapping[str, Any] | None
    """The pinned definition; None where it is the same, or was not kept."""
    after: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    """What the screen finds in the definition that is offered."""
    at: float = 0.0
    """When the pin was set."""

    @property
    def waits(self) -> bool:
        """Whether someone should decide: it changed, or is held back by no hand."""
        return self.changed or self.verdict != "kept_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Something small that a store keeps beside the catalogue: a key, a pin. Its body is plain JSON."""

    kind: str
    scope: Scope
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
