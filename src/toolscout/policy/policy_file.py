"""The policy file: who may see and call which tools, and how often. TOML, read into frozen data, errors by place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toolscout.errors import PolicyError

Act = Literal["see", "call"]

KINDS = ("tenant", "group", "user", "key")
"""What `who` may name, as in `group:engineering`; `anyone` is everyone who has identified themselves."""

ANYONE = "anyone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One `[[allow]]` or `[[deny]]`: whom it is about, and which tools. What it does not name, it does not narrow."""

    name: str
    """Where it stands, as in `allow 2`, or what its author called it."""
    who: frozenset[str]
    tenant: str | None = None
    may: Act = "call"
    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much is let through; None means no limit."""

    calls_per_minute: int | None = None
    concurrent_calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A whole policy file. Deny wins; what no rule allows is denied."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    caller: Limit = Limit()
    """For each key or user."""
    tools: tuple[tuple[str, Limit], ...] = ()
    """For each tool whose key fits the glob, whoever calls it; the first that fits counts."""
    source: str = ""


def read_policy(path: str | Path) -> Policy:
    """Read a policy file; an error names the file, and the line or the table and the field."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise PolicyError(f"{path} cannot be read: {error.strerror}", hint="check the path") from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path} is not UTF-8", hint="it is a TOML file: see docs/policy.md") from error
    return parse_policy(text, str(path))


def parse_policy(text: str, source: str = "policy") -> Policy:
    """Read the text of a policy file."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{source}: {error}", hint="it is a TOML file: see docs/policy.md") from None
    _known(document, ("allow", "deny", "limits"), source, "the file")
    limits = _table(document.get("limits", {}), source, "limits")
    per_tool = _table(limits.pop("tools", {}), source, "limits.tools")
    return Policy(
        allow=_rules(document, "allow", source),
        deny=_rules(document, "deny", source),
        caller=_limit(limits, source, "limits"),
        tools=tuple(
            (glob, _limit(_table(value, source, f"limits.tools.{glob!r}"), source, f"limits.tools.{glob!r}"))
            for glob, value in per_tool.items()
        ),
        source=source,
    )


def _rules(document: Mapping[str, Any], kind: str, source: str) -> tuple[Rule, ...]:
    found = document.get(kind, [])
    if not isinstance(found, list):
        raise PolicyError(f"{source}: {kind} is no list of tables", hint=f"write [[{kind}]], in double brackets")
    return tuple(_rule(item, f"{kind} {number}", source) for number, item in enumerate(found, start=1))


def _rule(item: Any, place: str, source: str) -> Rule:
    item = _table(item, source, place)
    fields = ("name", "who", "tenant", "may", "servers", "tools", "tags", "categories", "read_only")
    _known(item, fields, source, place)
    who = _texts(item, "who", source, place)
    if not who:
        raise PolicyError(f"{source}: {place} says nobody in `who`", hint='name someone, as in who = ["group:staff"]')
    for name in who:
        kind, _, rest = name.partition(":")
        if name != ANYONE and (kind not in KINDS or not rest):
            raise PolicyError(
                f"{source}: {place} has {name!r} in `who`",
                hint=f"write anyone, or one of {', '.join(f'{kind}:NAME' for kind in KINDS)}",
            )
    may = item.get("may", "see" if place.startswith("deny") else "call")
    if may not in ("see", "call"):
        raise PolicyError(f"{source}: {place} has may = {may!r}", hint='write may = "see" or may = "call"')
    tenant, read_only = item.get("tenant"), item.get("read_only", False)
    if (
        not isinstance(read_only, bool)
        or not isinstance(tenant, str | None)
        or not isinstance(item.get("name", ""), str)
    ):
        raise PolicyError(
            f"{source}: {place} has a field of the wrong kind",
            hint="tenant and name are texts, read_only is true or false",
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
    )


def _limit(item: Mapping[str, Any], source: str, place: str) -> Limit:
    _known(item, ("calls_per_minute", "concurrent_calls"), source, place)
    for name, value in item.items():
        if type(value) is not int or value < 1:
            raise PolicyError(f"{source}: {place}.{name} is {value!r}", hint="write a whole number from 1 up")
    return Limit(**item)


def _texts(item: Mapping[str, Any], name: str, source: str, place: str) -> tuple[str, ...]:
    value = item.get(name, [])
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise PolicyError(f"{source}: {place}.{name} is no list of texts", hint=f'write {name} = ["...", "..."]')
    return tuple(value)


def _table(value: Any, source: str, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PolicyError(f"{source}: {place} is no table", hint="see docs/policy.md")
    return dict(value)


def _known(item: Mapping[str, Any], names: Sequence[str], source: str, place: str) -> None:
    """Refuse a name that means nothing: a rule that is misspelt must not pass for one that does not narrow."""
    for name in item:
        if name not in names:
            raise PolicyError(f"{source}: {place} has an unknown name {name!r}", hint=f"known are {', '.join(names)}")
