"""The policy file, in TOML: who may see and call which tools, and how often. An error names the table and field."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toolscout.errors import PolicyError

Act = Literal["see", "call"]
ItemKind = Literal["resources", "prompts"]

KINDS = ("tenant", "group", "user", "key")
"""The kinds of names in `who`, as in `group:engineering`. `anyone` means every authenticated caller."""

ANYONE = "anyone"

_LIMITS = ("calls_per_minute", "concurrent_calls")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One `[[allow]]` or `[[deny]]`: the callers, and the tools, resources and prompts that it applies to.

    A rule that names none of these applies to all of them, within its servers.
    """

    name: str
    """The name in the file, or else the position, as in `allow 2`."""
    who: frozenset[str]
    tenant: str | None = None
    may: Act = "call"
    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    read_only: bool = False
    resources: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()

    def items(self, kind: ItemKind) -> tuple[str, ...]:
        """Return the patterns of resources or of prompts."""
        return self.resources if kind == "resources" else self.prompts

    @property
    def names_items(self) -> bool:
        """Whether it names resources or prompts."""
        return bool(self.resources or self.prompts)

    @property
    def names_tools(self) -> bool:
        """Whether it names tools, by name or by a property."""
        return bool(self.tools or self.tags or self.categories or self.read_only)

    @property
    def about_tools(self) -> bool:
        """Whether it applies to tools."""
        return self.names_tools or not self.names_items


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Rate limits. None means no limit."""

    calls_per_minute: int | None = None
    concurrent_calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A whole policy file. Deny rules have precedence. What no rule allows is denied."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    caller: Limit = Limit()
    """The limit of each API key or user."""
    requests_per_minute: int | None = None
    """The limit of HTTP requests of any kind of each API key or user. None means no limit."""
    tools: tuple[tuple[str, Limit], ...] = ()
    """Limits of each tool for all callers of a tenant together. The first glob that matches the key applies."""
    source: str = ""


def read_policy(path: str | Path) -> Policy:
    """Read a policy file. An error names the file, and the line or the table and field."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise PolicyError(f"{path} cannot be read: {error.strerror}", hint="check the path") from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path} is not UTF-8", hint="save it as UTF-8 TOML: see docs/policy.md") from error
    return parse_policy(text, str(path))


def parse_policy(text: str, source: str = "policy") -> Policy:
    """Parse the text of a policy file."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{source}: {error}", hint="correct the TOML: see docs/policy.md") from None
    _check_names(document, ("allow", "deny", "limits"), source, "the file")
    limits = _table(document.get("limits", {}), source, "limits")
    per_tool = _table(limits.pop("tools", {}), source, "limits.tools")
    per_caller = _numbers(limits, ("requests_per_minute", *_LIMITS), source, "limits")
    requests_per_minute = per_caller.pop("requests_per_minute", None)
    return Policy(
        allow=_rules(document, "allow", source),
        deny=_rules(document, "deny", source),
        caller=Limit(**per_caller),
        requests_per_minute=requests_per_minute,
        tools=tuple(
            (glob, Limit(**_numbers(value, _LIMITS, source, f"limits.tools.{glob!r}")))
            for glob, value in per_tool.items()
        ),
        source=source,
    )


def _rules(document: Mapping[str, Any], kind: str, source: str) -> tuple[Rule, ...]:
    tables = document.get(kind, [])
    if not isinstance(tables, list):
        raise PolicyError(f"{source}: {kind} is not a list of tables", hint=f"write [[{kind}]], in double brackets")
    return tuple(_rule(item, f"{kind} {number}", source) for number, item in enumerate(tables, start=1))


def _rule(item: Any, place: str, source: str) -> Rule:
    item = _table(item, source, place)
    fields = (
        "name",
        "who",
        "tenant",
        "may",
        "servers",
        "tools",
        "tags",
        "categories",
        "read_only",
        "resources",
        "prompts",
    )
    _check_names(item, fields, source, place)
    who = _texts(item, "who", source, place)
    if not who:
        raise PolicyError(f"{source}: {place} has no `who`", hint='say who it is for, as in who = ["group:staff"]')
    for name in who:
        kind, _, rest = name.partition(":")
        if name != ANYONE and (kind not in KINDS or not rest):
            raise PolicyError(
                f"{source}: {place} has an invalid {name!r} in `who`",
                hint=f"write anyone, or one of {', '.join(f'{kind}:NAME' for kind in KINDS)}",
            )
    may = item.get("may", "see" if place.startswith("deny") else "call")
    if may not in ("see", "call"):
        raise PolicyError(f"{source}: {place} has an invalid may = {may!r}", hint='write may = "see" or may = "call"')
    tenant, read_only = item.get("tenant"), item.get("read_only", False)
    if (
        not isinstance(read_only, bool)
        or not isinstance(tenant, str | None)
        or not isinstance(item.get("name", ""), str)
    ):
        raise PolicyError(
            f"{source}: {place} has a field of the wrong type",
            hint="tenant and name must be strings, read_only must be true or false",
        )
    return Rule(
        name=item.get("name", place),
        who=frozenset(who),
        tenant=tenant,
        may=may,
        servers=_texts(item, "servers", source, place),
        tools=_texts(item, "tools", source, place),
        tags=frozenset(tag.casefold() for tag in _texts(item, "tags", source, place)),
        categories=frozenset(name.casefold() for name in _texts(item, "categories", source, place)),
        read_only=read_only,
        resources=_texts(item, "resources", source, place),
        prompts=_texts(item, "prompts", source, place),
    )


def _numbers(value: Any, names: Sequence[str], source: str, place: str) -> dict[str, int]:
    item = _table(value, source, place)
    _check_names(item, names, source, place)
    for name, value in item.items():
        if type(value) is not int or value < 1:
            raise PolicyError(f"{source}: {place}.{name} is {value!r}", hint="write a whole number of at least 1")
    return item


def _texts(item: Mapping[str, Any], name: str, source: str, place: str) -> tuple[str, ...]:
    value = item.get(name, [])
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise PolicyError(f"{source}: {place}.{name} is not a list of strings", hint=f'write {name} = ["...", "..."]')
    return tuple(value)


def _table(value: Any, source: str, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PolicyError(f"{source}: {place} is not a table", hint="see docs/policy.md")
    return dict(value)


def _check_names(item: Mapping[str, Any], names: Sequence[str], source: str, place: str) -> None:
    """Refuse an unknown name: a rule with a misspelt field would apply to more than its author meant."""
    for name in item:
        if name not in names:
            raise PolicyError(f"{source}: {place} has an unknown name {name!r}", hint=f"use {', '.join(names)}")
