"""Whether a rule applies to a caller and a server, and whether a name matches its patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from functools import lru_cache

from toolscout.models import Caller
from toolscout.policy.policy_file import ANYONE, Rule

_MAX_GLOBS = 8_192


def names_of(caller: Caller) -> frozenset[str]:
    """Return the names that a caller has in the `who` of a rule."""
    groups = (f"group:{name}" for name in caller.groups)
    ids = (f"{kind}:{name}" for kind, name in (("user", caller.user), ("key", caller.key)) if name is not None)
    return frozenset({ANYONE, f"tenant:{caller.tenant}", *groups, *ids})


def applies_to(rule: Rule, caller: Caller, names: frozenset[str]) -> bool:
    """Tell whether a rule applies to a caller, whose names are given."""
    return (rule.tenant is None or rule.tenant == caller.tenant) and not rule.who.isdisjoint(names)


def covers_server(rule: Rule, server: Iterable[str]) -> bool:
    """Tell whether a rule covers a server, whose slug and title are given."""
    return not rule.servers or any_match(rule.servers, *server)


def any_match(globs: tuple[str, ...], *names: str) -> bool:
    """Tell whether a pattern matches a name, in any case."""
    return any(map(matcher(globs), names))


@lru_cache(maxsize=_MAX_GLOBS)
def matcher(globs: tuple[str, ...]) -> Callable[[str], object]:
    """Return a function that matches a name against all patterns at once."""
    return re.compile("|".join(map(translate, globs)) or r"(?!)", re.IGNORECASE).match
