"""Schemas that both chat APIs accept. They refuse the whole request if one definition is not acceptable.

A plain schema may allow more than the original. Nothing is lost: when the tool is called, its arguments are checked
against the original.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolscout.chat.names import with_hash

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
    """Return a schema of one object, with merged alternatives and accepted parameter names."""
    schema = _repair(schema)
    properties, required = _merge(schema, schema, set())
    names = _legal_names(properties)
    plain = {name: value for name, value in schema.items() if name not in _NOT_ON_TOP}
    plain |= {"type": "object", "properties": {}}
    for original, value in properties.items():
        name = names[original]
        plain["properties"][name] = value if name == original else {"title": original, **value}
    plain.pop("required", None)
    if required_names := [names[original] for original in dict.fromkeys(required) if original in properties]:
        plain["required"] = required_names
    return plain


def own_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Rename arguments from the names that the model was shown to those of the tool's own schema."""
    properties, _ = _merge(schema, schema, set())
    originals = {legal: original for original, legal in _legal_names(properties).items()}
    return {originals.get(name, name): value for name, value in arguments.items()}


def _merge(part: Any, whole: Mapping[str, Any], followed: set[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the properties and required names of a schema, including its reference and its alternatives."""
    part = _resolve(part, whole, followed)
    declared = part.get("properties")
    properties = {
        name: {} if value is True else dict(value)
        for name, value in (declared.items() if isinstance(declared, Mapping) else ())
        if isinstance(value, Mapping) or value is True
    }
    required = _names(part.get("required"))
    for word in _COMBINED:
        options = part.get(word)
        parts = [_merge(item, whole, followed) for item in (options if isinstance(options, list) else ())]
        for more, _ in parts:
            properties = {**more, **properties}
        if word == "allOf":
            required += [name for _, names in parts for name in names]
        elif parts:
            required += [name for name in parts[0][1] if all(name in names for _, names in parts)]
    return properties, required


def _resolve(part: Any, whole: Mapping[str, Any], followed: set[str]) -> Mapping[str, Any]:
    """Follow a reference inside the schema. Each one is followed once, so a circular schema does not loop."""
    if not isinstance(part, Mapping):
        return {}
    path = part.get("$ref")
    if not isinstance(path, str) or not path.startswith("#/") or path in followed or len(followed) >= _MOST_REFERENCES:
        return part
    followed.add(path)
    target: Any = whole
    for step in path[2:].split("/"):
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
    return {**_resolve(target, whole, followed), **{name: value for name, value in part.items() if name != "$ref"}}


def _legal_names(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return original name -> accepted name. Names that had to be changed end in a hash."""
    names = {}
    for original in properties:
        legal = _ILLEGAL.sub("_", original)
        unchanged = original and legal == original and len(original) <= _LONGEST
        names[original] = original if unchanged else with_hash(legal, original)
    return names


def _repair(value: Any) -> Any:
    """Drop keywords that current drafts of JSON Schema do not allow, at any depth, and give every array `items`."""
    if isinstance(value, list):
        return [_repair(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    kinds = value.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    repaired: dict[str, Any] = {}
    for name, item in value.items():
        if name == "type" and not all(isinstance(kind, str) and kind in _KINDS for kind in kinds):
            continue
        if name in _NUMBERS and isinstance(item, bool):
            continue
        if name in _NAMED and isinstance(item, Mapping):
            repaired[name] = {key: _repair(part) for key, part in item.items()}
        else:
            repaired[name] = item if name in _DATA else _repair(item)
    if "array" in kinds:
        repaired.setdefault("items", {})
    return repaired


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
