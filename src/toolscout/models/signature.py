"""The signature of a tool: its parameters in one line, as a model needs them to write a call.

>>> signature({"properties": {"head": {"type": "number"}, "path": {"type": "string"}}, "required": ["path"]})
'path: string, head?: number'
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

_MOST_PARAMETERS = 16
_MOST_VALUES = 8
_MOST_FIELDS = 8
_LONGEST_VALUE = 40
_LONGEST_NAME = 80


def signature(schema: Mapping[str, Any], most: int = _MOST_PARAMETERS) -> str:
    """Return the first parameters of a schema, required ones first, with their types and the values of enums."""
    return _fields(schema, most, nested=True)


def example_arguments(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the required parameters of a schema, each with its type in place of a value."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return {}
    names = [name for name in required[:_MOST_PARAMETERS] if isinstance(name, str) and name in properties]
    return {name[:_LONGEST_NAME]: f"<{_type(properties[name], nested=False)}>" for name in names}


def _fields(schema: Mapping[str, Any], most: int, *, nested: bool) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ""
    listed = schema.get("required")
    required = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    names = sorted(properties, key=lambda name: name not in required)
    parts = [
        f"{str(name)[:_LONGEST_NAME]}{'' if name in required else '?'}: {_type(properties[name], nested=nested)}"
        for name in names[:most]
    ]
    if len(names) > most:
        parts.append(f"{len(names) - most} more")
    return ", ".join(parts)


def _type(schema: Any, *, nested: bool) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if "const" in schema:
        return _value(schema["const"])
    if isinstance(schema.get("enum"), list):
        return _values(schema["enum"])
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            return _union(_type(option, nested=nested) for option in schema[word][:_MOST_VALUES])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(_type({**schema, "type": one}, nested=nested) for one in kind[:_MOST_VALUES])
    if kind == "array":
        inner = _type(schema.get("items"), nested=nested)
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if kind == "object" or (kind is None and isinstance(schema.get("properties"), Mapping)):
        fields = _fields(schema, _MOST_FIELDS, nested=False) if nested else ""
        return f"{{{fields}}}" if fields else "object"
    return kind if isinstance(kind, str) and kind.isalpha() else "any"


def _union(types: Iterable[str]) -> str:
    return " | ".join(name for name in dict.fromkeys(types) if name != "null") or "null"


def _values(values: list[Any]) -> str:
    more = [f"{len(values) - _MOST_VALUES} more"] if len(values) > _MOST_VALUES else []
    return " | ".join([*(_value(value) for value in values[:_MOST_VALUES]), *more]) or "any"


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:_LONGEST_VALUE]
