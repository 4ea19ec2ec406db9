"""Schemas as both chat APIs accept them: for one definition that they do not accept, they refuse the whole request.

What a plain schema gives away is not lost: arguments are checked against the schema itself when the tool is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolscout.chat.names import marked

_COMBINED = ("allOf", "anyOf", "oneOf")
_NOT_ON_TOP = {*_COMBINED, "enum", "not", "$ref"}
_NAMED = {"properties", "patternProperties", "$defs", "definitions"}
_NUMBERS = {"exclusiveMinimum", "exclusiveMaximum"}
_DATA = {"default", "enum", "const", "examples"}
_KINDS = {"array", "boolean", "integer", "null", "number", "object", "string"}
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_.-]")
_LONGEST = 64
_MOST_REFERENCES = 32


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Write an object on top, its alternatives laid together, parameters under names that are accepted."""
    schema = _mended(schema)
    properties, required = _laid_together(schema, schema, set())
    names = _legal_names(properties)
    plain = {name: value for name, value in schema.items() if name not in _NOT_ON_TOP}
    plain |= {"type": "object", "properties": {}}
    for own, value in properties.items():
        plain["properties"][names[own]] = value if names[own] == own else {"title": own, **value}
    plain.pop("required", None)
    if wanted := [names[own] for own in dict.fromkeys(required) if own in properties]:
        plain["required"] = wanted
    return plain


def own_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Give arguments the names back that the tool knows them by."""
    properties, _ = _laid_together(schema, schema, set())
    own = {legal: name for name, legal in _legal_names(properties).items()}
    return {own.get(name, name): value for name, value in arguments.items()}


def _laid_together(part: Any, whole: Mapping[str, Any], followed: set[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the properties and the required names of a schema: what it says, refers to, and has as alternatives."""
    part = _resolved(part, whole, followed)
    said = part.get("properties")
    properties = {
        name: {} if value is True else dict(value)
        for name, value in (said.items() if isinstance(said, Mapping) else ())
        if isinstance(value, Mapping) or value is True
    }
    required = _names(part.get("required"))
    for word in _COMBINED:
        given = part.get(word)
        parts = [_laid_together(item, whole, followed) for item in (given if isinstance(given, list) else ())]
        for more, _ in parts:
            properties = {**more, **properties}
        if word == "allOf":
            required += [name for _, names in parts for name in names]
        elif parts:
            required += [name for name in parts[0][1] if all(name in names for _, names in parts)]
    return properties, required


def _resolved(part: Any, whole: Mapping[str, Any], followed: set[str]) -> Mapping[str, Any]:
    """Follow a reference inside the schema, each one once, so that no schema leads round in circles."""
    if not isinstance(part, Mapping):
        return {}
    path = part.get("$ref")
    if not isinstance(path, str) or not path.startswith("#/") or path in followed or len(followed) >= _MOST_REFERENCES:
        return part
    followed.add(path)
    target: Any = whole
    for step in path[2:].split("/"):
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
    return {**_resolved(target, whole, followed), **{name: value for name, value in part.items() if name != "$ref"}}


def _legal_names(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return own name -> accepted name: the same, or what is accepted of it and a mark."""
    names = {}
    for own in properties:
        legal = _ILLEGAL.sub("_", own)
        names[own] = own if own and legal == own and len(own) <= _LONGEST else marked(legal, own)
    return names


def _mended(value: Any) -> Any:
    """Leave out of a schema, however deep, what no draft of today allows, and say of every list what it holds."""
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    kinds = value.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    written: dict[str, Any] = {}
    for name, item in value.items():
        if name == "type" and not all(isinstance(kind, str) and kind in _KINDS for kind in kinds):
            continue
        if name in _NUMBERS and isinstance(item, bool):
            continue
        if name in _NAMED and isinstance(item, Mapping):
            written[name] = {own: _mended(part) for own, part in item.items()}
        else:
            written[name] = item if name in _DATA else _mended(item)
    if "array" in kinds:
        written.setdefault("items", {})
    return written


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
