"""API keys, pins of definitions, and the records in which a store keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolscout.models.catalogue import Finding
from toolscout.models.tools import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key as a store keeps it: with a digest, never the secret. Times are seconds since the epoch."""

    id: str
    """The part of a key after `tsk_` that identifies it. It is not secret."""
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
"""The decision about a definition: only seen so far, approved by an operator, or kept out by an operator."""

KEPT_OUT = "kept out by hand"
"""The quarantine reason of a tool that an operator keeps out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The definition of a tool that later ones are compared with."""

    key: str
    fingerprint: str
    verdict: Verdict = "seen"
    at: float = 0.0
    before: Mapping[str, Any] | None = None
    """The pinned definition itself. It is stored when the server offers another one, to show the two side by side."""
    screened: str = ""
    """A hash of the definition that was screened last, and of the rules."""
    found: str = ""
    """What the screen found in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long a store keeps what no tool of the catalogue uses any more."""

    vectors_s: float = 7 * 86_400.0
    """Vectors, counted from when they were stored."""
    pins_s: float = 90 * 86_400.0
    """Pins without a decision of an operator, counted from when their tool was gone."""
    pins_most: int = 10_000
    """How many such pins of one server are kept: those whose tools were gone first, so that a flood drives out none."""
    settled_s: float = 3_600.0
    """How long they are kept whatever their number: pins of new tools are stored before the tools are published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A tool that an operator may have to decide about: its definition changed, or it is in quarantine."""

    key: str
    scope: Scope
    quarantine_reason: str
    """Why it is in quarantine, or "" if it is in use."""
    changed: bool
    """Whether the definition differs from the pinned one."""
    verdict: Verdict
    """The last decision about it."""
    before: Mapping[str, Any] | None
    """The pinned definition, or None if it is the same or was not stored."""
    after: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    """What the screen finds in the new definition."""
    at: float = 0.0
    """When the pin was set."""
    version: str = ""
    """What identifies the definition that is shown here. An approval names it."""

    @property
    def approval(self) -> str:
        """What approves exactly this definition: `KEY@VERSION`."""
        return f"{self.key}@{self.version}"

    @property
    def waits(self) -> bool:
        """Whether an operator should decide. A tool that was kept out and has not changed needs no decision."""
        return self.changed or self.verdict != "kept_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A small item that a store keeps beside the catalogue, such as an API key or a pin. Its body is plain JSON."""

    kind: str
    scope: Scope
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
