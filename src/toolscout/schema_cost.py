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

_MAX_VALUES = 4_000
_MAX_OBJECTS = 128
"""How much a schema may hold in all. It is checked itself, with the parts that nothing refers to."""

_MAX_SCHEMAS = 64
_MAX_DEPTH = 64
_MAX_PATTERN = 300
_MAX_OPTIONAL = 6
_MAX_STEPS = 4_000
_CHOICES_PER_STEP = 16
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
    names: int = 0
    """How many names an object may have to have. Each that is missing is an error of its own."""
    choices: int = 0
    """How many values and types one value may be compared with."""
    patterns: int = 0
    degree: int = 0
    """The steps of the worst pattern grow with the length of a text to this power."""
    unique: bool = False

    def allows(self, arguments: Any) -> bool:
        """Return whether a check of these arguments is certainly done within a few milliseconds."""
        if self.unbounded:
            return False
        values, objects, size = _measure(arguments)
        steps = values * (self.branches + self.choices // _CHOICES_PER_STEP) + objects * self.names
        return (
            steps <= _MAX_STEPS
            and size * self.branches <= _MAX_BYTES
            and self.patterns * size**self.degree <= _MAX_PATTERN_STEPS
            and not (self.unique and values > _MAX_UNIQUE)
        )


def cost_of(schema: Mapping[str, Any]) -> SchemaCost:
    """Estimate a schema. This takes a bounded time, whatever the schema is."""
    cost = SchemaCost()
    try:
        _check_size(schema)
        _walk(schema, schema, cost, ())
    except _TooMuchError:
        cost.unbounded = True
    return cost


def _check_size(schema: Mapping[str, Any]) -> None:
    """Raise an error unless the schema itself is certainly checked within a few milliseconds."""
    values = objects = 0
    stack: list[Any] = [schema]
    while stack:
        node = stack.pop()
        values += 1
        if isinstance(node, Mapping):
            objects += 1
            lists = (*_required(node), node.get("type"))
            if not all(map(_are_texts, lists)) or any(len(pattern) > _MAX_PATTERN for pattern in _patterns(node)):
                raise _TooMuchError
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        if values > _MAX_VALUES or objects > _MAX_OBJECTS:
            raise _TooMuchError


def _required(node: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the lists of names that an object must have, always or beside another name."""
    dependent = node.get("dependentRequired")
    yield node.get("required")
    yield from (dependent.values() if isinstance(dependent, Mapping) else ())


def _are_texts(value: Any) -> bool:
    """Return whether a list has texts only. To find that those are unique takes little time, unlike other values."""
    return not isinstance(value, list) or all(isinstance(item, str) for item in value)


def _patterns(node: Mapping[str, Any]) -> Iterator[str]:
    others = node.get("patternProperties")
    for pattern in (node.get("pattern"), *(others if isinstance(others, Mapping) else ())):
        if isinstance(pattern, str):
            yield pattern


def _walk(node: Any, root: Mapping[str, Any], cost: SchemaCost, references: tuple[str, ...], depth: int = 0) -> None:
    """Visit all schemas as often as they may be applied: what is referred to twice counts twice."""
    if not isinstance(node, Mapping):
        return
    cost.schemas += 1
    if cost.schemas > _MAX_SCHEMAS or depth > _MAX_DEPTH or len(node) > _MAX_SCHEMAS or _UNBOUNDED & node.keys():
        raise _TooMuchError
    cost.unique = cost.unique or bool(node.get("uniqueItems"))
    cost.names += sum(len(names) for names in _required(node) if isinstance(names, list))
    cost.choices += sum(_measure(node.get(word))[0] for word in ("enum", "const"))
    for pattern in _patterns(node):
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


def _measure(arguments: Any) -> tuple[int, int, int]:
    """Return how many values, objects and characters arguments have, up to the largest numbers that matter."""
    values = objects = size = 0
    stack = [arguments]
    while stack and values <= _MAX_STEPS:
        item = stack.pop()
        values += 1
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, Mapping):
            objects += 1
            size += sum(len(str(name)) for name in item)
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
        else:
            size += 8
    if isinstance(arguments, str):
        values = objects = len(arguments) // 2
    return values, objects, size
