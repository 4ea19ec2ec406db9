"""The access rules: the one predicate that search, details, relations, suggestions, counts and calls all use."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from toolscout.models import Caller, Facets, Tool
from toolscout.policy.matching import any_match, applies_to, covers_server, matcher, names_of
from toolscout.policy.policy_file import Act, Policy, Rule
from toolscout.policy.server_items import ServerItem, may_use

_MAX_CALLERS = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether an act is allowed, and the rule that decides it."""

    allowed: bool
    because: str
    suggestions: tuple[str, ...] = ()
    """Similar keys, if there is no such tool."""


def may_see(caller: Caller, tool: Facets | Tool) -> bool:
    """Decide what holds without a policy: the tool is enabled, not in quarantine, and within the caller's reach."""
    return (
        tool.enabled
        and not tool.quarantine_reason
        and tool.tenant == caller.tenant
        and (tool.owner is None or tool.owner == caller.user)
        and (tool.owner is not None or caller.servers is None or tool.server in caller.servers)
    )


class Rules:
    """The predicate of a policy. `apply` replaces the policy and increments `version`."""

    def __init__(self, policy: Policy | None = None) -> None:
        """Use a policy. Without one, everyone in a tenant may use all its tools."""
        self._current = _CompiledPolicy(policy, 1)

    def apply(self, policy: Policy | None) -> None:
        """Use another policy. One assignment replaces it together with its version, because searches run in threads."""
        self._current = _CompiledPolicy(policy, self.version + 1)

    @property
    def policy(self) -> Policy | None:
        """The policy in force."""
        return self._current.policy

    @property
    def has_policy(self) -> bool:
        """Whether a policy is in force."""
        return self._current.policy is not None

    @property
    def version(self) -> int:
        """A number that grows with every policy that is applied."""
        return self._current.version

    def __call__(self, caller: Caller, tool: Facets | Tool) -> bool:
        """Decide whether the caller may see the tool. An error denies it."""
        return self._is_allowed(caller, tool, "see")

    def may_call(self, caller: Caller, tool: Facets | Tool) -> bool:
        """Decide whether the caller may call the tool. Callers can only call tools that they may see."""
        return self._is_allowed(caller, tool, "call")

    def denies(self, caller: Caller, key: str, *server: str) -> bool:
        """Decide whether a deny rule names something that is no tool, by its key or its server. An error denies it.

        `server` are the slug and the title of the server.
        """
        try:
            current = self._current
            if current.policy is None:
                return False
            return any(
                applies_to(rule, caller, names_of(caller))
                and covers_server(rule, server)
                and (
                    any_match(rule.tools, key) if rule.tools else not (rule.tags or rule.categories or rule.names_items)
                )
                for rule in current.policy.deny
            )
        except Exception:  # noqa: BLE001 - a rule that cannot be evaluated denies
            return True

    def may_use(self, caller: Caller, item: ServerItem, *, calls_tools: bool) -> bool:
        """Decide whether the caller may use a resource or a prompt. An error denies it."""
        try:
            return may_use(self._current.policy, caller, item, calls_tools=calls_tools)
        except Exception:  # noqa: BLE001 - a rule that cannot be evaluated denies
            return False

    def cache_key(self, caller: Caller) -> Hashable:
        """Return a cache key. It is equal for callers to whom the same rules apply, apart from tools that they own."""
        current = self._current
        return current.version, caller.tenant, caller.servers, current.positions(caller)

    def explain(self, caller: Caller, tool: Facets | Tool, act: Act) -> Decision:
        """Decide, and give the reason."""
        if not may_see(caller, tool):
            return Decision(allowed=False, because=_hidden_reason(caller, tool))
        current = self._current
        if current.policy is None:
            return Decision(allowed=True, because="there is no policy: everyone in the tenant may use it")
        deny, allow = current.rules(caller, tool.server, tool.server_title)
        for rule in deny.candidates(tool):
            if act in _denied_acts(rule) and _matches(rule, tool, labels=True):
                return Decision(allowed=False, because=f"{rule.name} denies it")
        if tool.owner is not None:
            return Decision(allowed=True, because="it is the caller's own tool")
        for rule in allow.candidates(tool):
            if (act == "see" or rule.may == "call") and _matches(rule, tool, labels=tool.trusted):
                return Decision(allowed=True, because=f"{rule.name} allows it")
        return Decision(allowed=False, because="no rule allows it")

    def _is_allowed(self, caller: Caller, tool: Facets | Tool, act: Act) -> bool:
        try:
            if self._current.policy is None:
                return may_see(caller, tool)
            return self.explain(caller, tool, act).allowed
        except Exception:  # noqa: BLE001 - a rule that cannot be evaluated denies
            return False


class _CompiledPolicy:
    """A policy, with caches of the rules that apply to a caller and a server."""

    def __init__(self, policy: Policy | None, version: int) -> None:
        self.policy = policy
        self.version = version
        policy = policy or Policy()
        self._deny = tuple(rule for rule in policy.deny if rule.about_tools)
        self._allow = tuple(rule for rule in policy.allow if rule.about_tools)
        self.positions = lru_cache(maxsize=_MAX_CALLERS)(self._find_positions)
        self.rules = lru_cache(maxsize=_MAX_CALLERS)(self._find_rules)

    def _find_positions(self, caller: Caller) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the positions of the deny rules and of the allow rules that apply to a caller."""
        names = names_of(caller)
        return (
            tuple(number for number, rule in enumerate(self._deny) if applies_to(rule, caller, names)),
            tuple(number for number, rule in enumerate(self._allow) if applies_to(rule, caller, names)),
        )

    def _find_rules(self, caller: Caller, *server: str) -> tuple[_RuleList, _RuleList]:
        """Return the rules that apply to a caller and a server. A rule may name a server by its slug or its title."""
        deny, allow = self.positions(caller)
        return (
            _RuleList([rule for rule in map(self._deny.__getitem__, deny) if covers_server(rule, server)]),
            _RuleList([rule for rule in map(self._allow.__getitem__, allow) if covers_server(rule, server)]),
        )


class _RuleList:
    """Rules in their order. One pattern tests all rules that name tools but no server."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._others = [rule for rule in rules if rule.servers or not rule.tools]
        self._names = matcher(tuple(glob for rule in rules if not rule.servers for glob in rule.tools))

    def candidates(self, tool: Facets | Tool) -> Sequence[Rule]:
        """Return the rules to test, without those that name tools if none of them names this one."""
        return self._rules if self._names(tool.key) or self._names(tool.name) else self._others


def _denied_acts(rule: Rule) -> Iterable[Act]:
    """Return the acts that a deny rule denies. To deny `see` is to deny `call` too, but not the reverse."""
    return ("see", "call") if rule.may == "see" else ("call",)


def _matches(rule: Rule, tool: Facets | Tool, *, labels: bool) -> bool:
    """Tell whether a rule matches a tool. Without `labels`, rules about tags or categories do not match.

    An untrusted server chooses its labels itself, so they must not allow anything.
    """
    if not labels and (rule.tags or rule.categories):
        return False
    return (
        (not rule.tools or any_match(rule.tools, tool.key, tool.name))
        and (not rule.tags or not rule.tags.isdisjoint(tag.casefold() for tag in tool.tags))
        and (not rule.categories or tool.category.casefold() in rule.categories)
        and (not rule.read_only or tool.read_only)
    )


def _hidden_reason(caller: Caller, tool: Facets | Tool) -> str:
    reasons: tuple[tuple[bool, str], ...] = (
        (tool.tenant != caller.tenant, "it belongs to another tenant"),
        (tool.owner not in (None, caller.user), "it belongs to another user"),
        (bool(tool.quarantine_reason), f"it is held back: {tool.quarantine_reason}"),
        (not tool.enabled, "it is disabled"),
    )
    return next((reason for applies, reason in reasons if applies), "the caller cannot reach its server")
