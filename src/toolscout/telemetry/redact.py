"""Removes what must not be logged: arguments become their shape, without values, and addresses lose passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_MAX_NAMES = 50
_MAX_DEPTH = 3
_PASSWORD = re.compile(r"^([^:/]*://[^:/@]*):.*@", re.S)
_PARAMETER = re.compile(r"((?:password|passwd|secret|token|key)=)[^&\s]*", re.I)


def without_password(url: str) -> str:
    """Replace the password and the secret parameters of an address with `***`."""
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def shape_of(arguments: Any, schema: Mapping[str, Any]) -> Any:
    """Describe arguments by type and size. Names that are not in the schema are only counted."""
    if not isinstance(arguments, Mapping):
        return _kind(arguments, {}, 0)
    return _object(arguments, schema, 0)


def _object(value: Mapping[Any, Any], schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    names = [name for name in list(properties)[:_MAX_NAMES] if name in value]
    shape = {name: _kind(value[name], properties[name], depth + 1) for name in names}
    other = sum(1 for name in value if name not in properties)
    return {**shape, **({"…": f"{other} more"} if other else {})}


def _kind(value: Any, schema: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return f"text of {len(value)}"
    if isinstance(value, Mapping):
        inner = schema if isinstance(schema, Mapping) else {}
        return _object(value, inner, depth) if depth < _MAX_DEPTH else f"object of {len(value)}"
    return f"list of {len(value)}" if isinstance(value, (list, tuple)) else type(value).__name__
