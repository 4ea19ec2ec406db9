"""The rules for resources and prompts, which are no tools: by the name that their server gives them.

Where no allow rule of the policy names resources, whoever may call a tool of a server may use its resources. The same
holds for prompts.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from toolscout.models import Caller
from toolscout.policy.matching import any_match, applies_to, covers_server, names_of
from toolscout.policy.policy_file import ItemKind, Policy, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerItem:
    """A resource or a prompt of a server."""

    kind: ItemKind
    server: str
    """The slug of the server."""
    title: str
    """The name of the server in the config."""
    name: str | None
    """The address of the resource or the name of the prompt, as the server writes it. None means any."""


def may_use(policy: Policy | None, caller: Caller, item: ServerItem, *, calls_tools: bool) -> bool:
    """Decide whether a caller may use a resource or a prompt. `calls_tools`: they may call a tool of its server."""
    if policy is None:
        return calls_tools
    spellings = _spellings(item)
    if any(_denies(rule, item.kind, spellings) for rule in _about(policy.deny, caller, item)):
        return False
    if not any(rule.items(item.kind) for rule in policy.allow):
        return calls_tools
    return any(_allows(rule, item.kind, spellings) for rule in _about(policy.allow, caller, item))


def _about(rules: Iterable[Rule], caller: Caller, item: ServerItem) -> Iterable[Rule]:
    names = names_of(caller)
    return (
        rule for rule in rules if applies_to(rule, caller, names) and covers_server(rule, (item.server, item.title))
    )


def _denies(rule: Rule, kind: ItemKind, spellings: Sequence[str]) -> bool:
    """Tell whether a rule denies one spelling of a name, which is enough, or everything of its servers."""
    globs = rule.items(kind)
    if globs:
        return any(any_match(globs, name) for name in spellings)
    return not (rule.tools or rule.tags or rule.categories or rule.names_items)


def _allows(rule: Rule, kind: ItemKind, spellings: Sequence[str]) -> bool:
    """Tell whether a rule allows every spelling of a name, or everything of its servers."""
    if rule.may != "call":
        return False
    globs = rule.items(kind)
    return all(any_match(globs, name) for name in spellings) if globs else not (rule.names_tools or rule.names_items)


def _spellings(item: ServerItem) -> Sequence[str]:
    """Return a name as it was sent and, for an address, as a server may read it: decoded, without `..` and `//`."""
    if item.name is None:
        return ()
    if item.kind == "prompts":
        return (item.name,)
    decoded = unquote(unquote(item.name)).replace("\\", "/")
    scheme, separator, rest = decoded.partition("://") if "://" in decoded else ("", "", decoded)
    if "/." not in rest and "//" not in rest:
        return (item.name, decoded)
    path = posixpath.normpath(re.sub("/+", "/", rest))
    return (item.name, decoded, f"{scheme}{separator}{path}")
