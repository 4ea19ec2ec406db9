"""The one predicate: search, details, related, suggestions, counts and calls all ask it, and only it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from toolscout.models import Caller, Facets, Tool
from toolscout.policy.document import ANYONE, Act, Policy, Rule

_REMEMBERED_CALLERS = 1_024

Judged = Facets | Tool
"""Both say all that a rule asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether it is allowed, and which rule says so."""

    allowed: bool
    because: str
    suggestions: tuple[str, ...] = ()
    """The nearest keys, where there is no such tool."""


def may_see(caller: Caller, tool: Judged) -> bool:
    """Decide what stands before any policy: same tenant, everyone's or their own, in reach, on, and not held back."""
    return (
        tool.enabled
        and not tool.held
        and tool.tenant == caller.tenant
        and (tool.owner is None or tool.owner == caller.user)
        and (tool.owner is not None or caller.servers is None or tool.server in caller.servers)
    )


class Rules:
    """A policy as the predicate; `apply` puts another in its place, and a new `version` makes that known."""

    def __init__(self, policy: Policy | None = None) -> None:
        """Begin with a policy, or with none: everyone of a tenant may then use everything of it."""
        self.version = 0
        self.apply(policy)

    def apply(self, policy: Policy | None) -> None:
        """Judge by another policy from now on."""
        self.policy = policy
        self.version += 1
        self._about = lru_cache(maxsize=_REMEMBERED_CALLERS)(self._sort_out)

    def __call__(self, caller: Caller, tool: Judged) -> bool:
        """Decide whether the caller may see the tool; an error in deciding denies."""
        return self._safely(caller, tool, "see")

    def may_call(self, caller: Caller, tool: Judged) -> bool:
        """Decide whether the caller may call the tool, which takes that they may see it."""
        return self._safely(caller, tool, "call")

    def explain(self, caller: Caller, tool: Judged, act: Act) -> Decision:
        """Decide, and say why."""
        if not may_see(caller, tool):
            return Decision(allowed=False, because=_absence(caller, tool))
        if self.policy is None:
            return Decision(allowed=True, because="there is no policy: everyone of the tenant may use it")
        deny, allow = self._about(caller)
        for rule in deny:
            if act in _acts_denied(rule) and _fits(rule, tool, labels=True):
                return Decision(allowed=False, because=f"{rule.name} denies it")
        if tool.owner is not None:
            return Decision(allowed=True, because="it is the caller's own tool")
        for rule in allow:
            if (act == "see" or rule.may == "call") and _fits(rule, tool, labels=tool.trusted):
                return Decision(allowed=True, because=f"{rule.name} allows it")
        return Decision(allowed=False, because="no rule allows it")

    def _safely(self, caller: Caller, tool: Judged, act: Act) -> bool:
        try:
            return self.explain(caller, tool, act).allowed
        except Exception:  # noqa: BLE001 - a rule that cannot be judged denies
            return False

    def _sort_out(self, caller: Caller) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
        """Return the rules that are about a caller, so that each tool is held against these few alone."""
        policy = self.policy or Policy()
        names = _names(caller)
        return (
            tuple(rule for rule in policy.deny if _about(rule, caller, names)),
            tuple(rule for rule in policy.allow if _about(rule, caller, names)),
        )


def _names(caller: Caller) -> frozenset[str]:
    groups = (f"group:{name}" for name in caller.groups)
    own = (f"{kind}:{name}" for kind, name in (("user", caller.user), ("key", caller.key)) if name is not None)
    return frozenset({ANYONE, f"tenant:{caller.tenant}", *groups, *own})


def _about(rule: Rule, caller: Caller, names: frozenset[str]) -> bool:
    return (rule.tenant is None or rule.tenant == caller.tenant) and not rule.who.isdisjoint(names)


def _acts_denied(rule: Rule) -> Iterable[Act]:
    """Who may not see a tool may not call it; who may not call it may still see it."""
    return ("see", "call") if rule.may == "see" else ("call",)


def _fits(rule: Rule, tool: Judged, *, labels: bool) -> bool:
    """Hold a tool against a rule; the labels of a server that is not trusted open nothing (`labels`)."""
    if not labels and (rule.tags or rule.categories):
        return False
    return (
        (not rule.servers or _any(rule.servers, tool.server, tool.server_title))
        and (not rule.tools or _any(rule.tools, tool.key, tool.name))
        and (not rule.tags or not rule.tags.isdisjoint(tag.casefold() for tag in tool.tags))
        and (not rule.categories or tool.category.casefold() in rule.categories)
        and (not rule.read_only or tool.read_only)
    )


def _any(globs: Iterable[str], *names: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs for name in names)


def _absence(caller: Caller, tool: Judged) -> str:
    reasons: tuple[tuple[bool, str], ...] = (
        (tool.tenant != caller.tenant, "it belongs to another tenant"),
        (tool.owner not in (None, caller.user), "it belongs to another user"),
        (bool(tool.held), f"it is held back: {tool.held}"),
        (not tool.enabled, "it is switched off"),
    )
    return next((reason for here, reason in reasons if here), "its server is out of the caller's reach")
