"""The one predicate: search, details, related, suggestions, counts and calls all ask it, and only it."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from toolscout.models import Caller, Facets, Tool
from toolscout.policy.policy_file import ANYONE, Act, Policy, Rule

_REMEMBERED = 1_024
_REMEMBERED_GLOBS = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether it is allowed, and which rule says so."""

    allowed: bool
    because: str
    suggestions: tuple[str, ...] = ()
    """The nearest keys, where there is no such tool."""


def may_see(caller: Caller, tool: Facets | Tool) -> bool:
    """Decide what stands before any policy: same tenant, everyone's or their own, in reach, on, and not held back."""
    return (
        tool.enabled
        and not tool.quarantine_reason
        and tool.tenant == caller.tenant
        and (tool.owner is None or tool.owner == caller.user)
        and (tool.owner is not None or caller.servers is None or tool.server in caller.servers)
    )


class Rules:
    """A policy as the predicate; `apply` puts another in its place, and a new `version` makes that known."""

    def __init__(self, policy: Policy | None = None) -> None:
        """Begin with a policy, or with none: everyone of a tenant may then use everything of it."""
        self._in_force = _Sorted(policy, 1)

    def apply(self, policy: Policy | None) -> None:
        """Judge by another policy from now on; policy and version change at once, as searches run in threads."""
        self._in_force = _Sorted(policy, self.version + 1)

    @property
    def policy(self) -> Policy | None:
        """The policy in force."""
        return self._in_force.policy

    @property
    def has_policy(self) -> bool:
        """Whether a policy is in force."""
        return self._in_force.policy is not None

    @property
    def version(self) -> int:
        """A number that grows with every policy that is applied."""
        return self._in_force.version

    def __call__(self, caller: Caller, tool: Facets | Tool) -> bool:
        """Decide whether the caller may see the tool; an error in deciding denies."""
        return self._safely(caller, tool, "see")

    def may_call(self, caller: Caller, tool: Facets | Tool) -> bool:
        """Decide whether the caller may call the tool, which takes that they may see it."""
        return self._safely(caller, tool, "call")

    def cache_key(self, caller: Caller) -> Hashable:
        """Return a cache key: equal for callers to whom the same rules apply, apart from the tools they own."""
        in_force = self._in_force
        return in_force.version, caller.tenant, caller.servers, in_force.places(caller)

    def explain(self, caller: Caller, tool: Facets | Tool, act: Act) -> Decision:
        """Decide, and say why."""
        if not may_see(caller, tool):
            return Decision(allowed=False, because=_absence(caller, tool))
        in_force = self._in_force
        if in_force.policy is None:
            return Decision(allowed=True, because="there is no policy: everyone of the tenant may use it")
        deny, allow = in_force.few(caller, tool.server, tool.server_title)
        for rule in deny.near(tool):
            if act in _acts_denied(rule) and _fits(rule, tool, labels=True):
                return Decision(allowed=False, because=f"{rule.name} denies it")
        if tool.owner is not None:
            return Decision(allowed=True, because="it is the caller's own tool")
        for rule in allow.near(tool):
            if (act == "see" or rule.may == "call") and _fits(rule, tool, labels=tool.trusted):
                return Decision(allowed=True, because=f"{rule.name} allows it")
        return Decision(allowed=False, because="no rule allows it")

    def _safely(self, caller: Caller, tool: Facets | Tool, act: Act) -> bool:
        try:
            return self.explain(caller, tool, act).allowed
        except Exception:  # noqa: BLE001 - a rule that cannot be judged denies
            return False


class _Sorted:
    """A policy, and which of its rules are about whom: each tool is held against these few alone."""

    def __init__(self, policy: Policy | None, version: int) -> None:
        self.policy = policy
        self.version = version
        self._deny, self._allow = (policy.deny, policy.allow) if policy else ((), ())
        self.places = lru_cache(maxsize=_REMEMBERED)(self._find_places)
        self.few = lru_cache(maxsize=_REMEMBERED)(self._find_few)

    def _find_places(self, caller: Caller) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the rules about a caller, denying and allowing, each by its place."""
        names = _names(caller)
        return (
            tuple(place for place, rule in enumerate(self._deny) if _about(rule, caller, names)),
            tuple(place for place, rule in enumerate(self._allow) if _about(rule, caller, names)),
        )

    def _find_few(self, caller: Caller, *server: str) -> tuple[_Few, _Few]:
        """Return the rules about a caller and a server, which goes by its slug and its title."""
        deny, allow = self.places(caller)
        return (
            _Few([rule for rule in map(self._deny.__getitem__, deny) if _is_of(rule, server)]),
            _Few([rule for rule in map(self._allow.__getitem__, allow) if _is_of(rule, server)]),
        )


class _Few:
    """Rules in their order; those that name tools, of whatever server, are held against a tool all at once."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._others = [rule for rule in rules if rule.servers or not rule.tools]
        self._names = _matcher(tuple(glob for rule in rules if not rule.servers for glob in rule.tools))

    def near(self, tool: Facets | Tool) -> Sequence[Rule]:
        """Leave out the rules that name tools, where none of them names this one."""
        return self._rules if self._names(tool.key) or self._names(tool.name) else self._others


def _names(caller: Caller) -> frozenset[str]:
    groups = (f"group:{name}" for name in caller.groups)
    own = (f"{kind}:{name}" for kind, name in (("user", caller.user), ("key", caller.key)) if name is not None)
    return frozenset({ANYONE, f"tenant:{caller.tenant}", *groups, *own})


def _about(rule: Rule, caller: Caller, names: frozenset[str]) -> bool:
    return (rule.tenant is None or rule.tenant == caller.tenant) and not rule.who.isdisjoint(names)


def _is_of(rule: Rule, server: Iterable[str]) -> bool:
    return not rule.servers or _any(rule.servers, *server)


def _acts_denied(rule: Rule) -> Iterable[Act]:
    """Who may not see a tool may not call it; who may not call it may still see it."""
    return ("see", "call") if rule.may == "see" else ("call",)


def _fits(rule: Rule, tool: Facets | Tool, *, labels: bool) -> bool:
    """Hold a tool against a rule; the labels of a server that is not trusted open nothing (`labels`)."""
    if not labels and (rule.tags or rule.categories):
        return False
    return (
        (not rule.tools or _any(rule.tools, tool.key, tool.name))
        and (not rule.tags or not rule.tags.isdisjoint(tag.casefold() for tag in tool.tags))
        and (not rule.categories or tool.category.casefold() in rule.categories)
        and (not rule.read_only or tool.read_only)
    )


def _any(globs: tuple[str, ...], *names: str) -> bool:
    return any(map(_matcher(globs), names))


@lru_cache(maxsize=_REMEMBERED_GLOBS)
def _matcher(globs: tuple[str, ...]) -> Callable[[str], object]:
    return re.compile("|".join(map(translate, globs)) or r"(?!)").match


def _absence(caller: Caller, tool: Facets | Tool) -> str:
    reasons: tuple[tuple[bool, str], ...] = (
        (tool.tenant != caller.tenant, "it belongs to another tenant"),
        (tool.owner not in (None, caller.user), "it belongs to another user"),
        (bool(tool.quarantine_reason), f"it is held back: {tool.quarantine_reason}"),
        (not tool.enabled, "it is switched off"),
    )
    return next((reason for here, reason in reasons if here), "its server is out of the caller's reach")
