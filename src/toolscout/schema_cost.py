"""How long it may take to check arguments by a schema, estimated from above.

A schema comes from a stranger. Patterns that backtrack, references that branch and lists of unique items can make a
check of a few bytes last for hours. What is certainly cheap is checked in place, all else where it can be stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

_MAX_SCHEMAS = 64
_MAX_DEPTH = 64
_MAX_PATTERN = 300
_MAX_OPTIONAL = 6
_MAX_STEPS = 4_000
_MAX_BYTES = 1_000_000
_MAX_PATTERN_STEPS = 100_000
_MAX_UNIQUE = 100

_OF_ONE = ("additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames")
_OF_LIST = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_OF_OBJECT = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_SAME_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contains", "dependentSchemas"})
_UNBOUNDED = frozenset({"$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties"})


class _TooMuchError(Exception):
    """Nothing certain can be said about the schema."""


@dataclass(slots=True)
class SchemaCost:
    """What makes a schema expensive. `unbounded` means that nothing certain can be said."""

    unbounded: bool = False
    schemas: int = 0
    branches: int = 1
    """How many schemas may be applied to one value."""
    patterns: int = 0
    degree: int = 0
    """The steps of the worst pattern grow with the length of a text to this power."""
    unique: bool = False

    def allows(self, arguments: Any) -> bool:
        """Return whether a check of these arguments is certainly done within a few milliseconds."""
        if self.unbounded:
            return False
        values, size = _measure(arguments)
        return (
            values * self.branches <= _MAX_STEPS
            and size * self.branches <= _MAX_BYTES
            and self.patterns * size**self.degree <= _MAX_PATTERN_STEPS
            and not (self.unique and values > _MAX_UNIQUE)
        )


def cost_of(schema: Mapping[str, Any]) -> SchemaCost:
    """Estimate a schema. This takes a bounded time, whatever the schema is."""
    cost = SchemaCost()
    try:
        _walk(schema, schema, cost, ())
    except _TooMuchError:
        cost.unbounded = True
    return cost


def _walk(node: Any, root: Mapping[str, Any], cost: SchemaCost, references: tuple[str, ...], depth: int = 0) -> None:
    """Visit all schemas as often as they may be applied: what is referred to twice counts twice."""
    if not isinstance(node, Mapping):
        return
    cost.schemas += 1
    if cost.schemas > _MAX_SCHEMAS or depth > _MAX_DEPTH or len(node) > _MAX_SCHEMAS or _UNBOUNDED & node.keys():
        raise _TooMuchError
    cost.unique = cost.unique or bool(node.get("uniqueItems"))
    patterns = node.get("patternProperties")
    for pattern in (node.get("pattern"), *(patterns if isinstance(patterns, Mapping) else ())):
        if isinstance(pattern, str):
            cost.patterns += 1
            cost.degree = max(cost.degree, _degree(pattern))
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference in references or not reference.startswith("#/") or "$id" in node:
            raise _TooMuchError
        cost.branches += 1
        _walk(_resolve(root, reference), root, cost, (*references, reference), depth + 1)
    for word, child in _children(node):
        cost.branches += word in _SAME_PLACE and isinstance(child, Mapping)
        _walk(child, root, cost, references, depth + 1)


def _children(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for word in _OF_ONE:
        yield word, node.get(word)
    for word in _OF_LIST:
        values = node.get(word)
        yield from ((word, value) for value in (values if isinstance(values, list) else ()))
    for word in _OF_OBJECT:
        parts = node.get(word)
        yield from ((word, value) for value in (parts.values() if isinstance(parts, Mapping) else ()))


def _resolve(root: Mapping[str, Any], reference: str) -> Any:
    node: Any = root
    for part in unquote(reference[2:]).split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdecimal() and int(name[:9]) < len(node):
            node = node[int(name)]
        else:
            return None
    return node


def _degree(pattern: str) -> int:
    """Return the power with which a pattern's steps grow at most. It is searched for at every place of a text."""
    if len(pattern) > _MAX_PATTERN:
        raise _TooMuchError
    try:
        parsed = list(re._parser.parse(pattern))  # type: ignore[attr-defined]  # noqa: SLF001 - the standard library's own
    except (re.error, OverflowError, RecursionError):
        return 0  # it cannot be compiled, so it is never run
    anchored = bool(parsed) and str(parsed[0][0]) == "AT" and str(parsed[0][1]).startswith("AT_BEGINNING")
    repeats, optional = _repeats(parsed, within=False)
    if optional > _MAX_OPTIONAL:
        raise _TooMuchError
    return repeats + (0 if anchored else 1)


def _repeats(items: Any, *, within: bool) -> tuple[int, int]:
    """Count the variable repeats and the optional parts. Choices inside a repeat can backtrack without bound."""
    repeats = optional = 0
    for operator, value in items:
        name = str(operator)
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "CATEGORY"):
            continue
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = value
            loop, variable = int(most) > 1, most != least
            if variable and within:
                raise _TooMuchError
            found = _repeats(inner, within=within or loop)
            repeats += found[0] + (loop and variable)
            optional += found[1] + (variable and not loop)
        elif name == "SUBPATTERN":
            found = _repeats(value[-1], within=within)
            repeats, optional = repeats + found[0], optional + found[1]
        elif name == "BRANCH" and not within:
            counts = [_repeats(branch, within=within) for branch in value[1]]
            repeats, optional = repeats + sum(a for a, _ in counts), optional + sum(b for _, b in counts)
        else:
            raise _TooMuchError
    return repeats, optional


def _measure(arguments: Any) -> tuple[int, int]:
    """Return how many values and characters arguments have, up to the largest numbers that matter."""
    values = size = 0
    stack = [arguments]
    while stack and values <= _MAX_STEPS:
        item = stack.pop()
        values += 1
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, Mapping):
            size += sum(len(str(name)) for name in item)
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
        else:
            size += 8
    if isinstance(arguments, str):
        values = len(arguments) // 2
    return values, size
