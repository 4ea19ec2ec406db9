"""What may be written down: the shape of arguments, never their values; an address, never its password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_MOST = 50
_DEEPEST = 3
_PASSWORD = re.compile(r"^([^:/]*://[^:/@]*):.*@", re.S)
_PARAMETER = re.compile(r"((?:password|passwd|secret|token|key)=)[^&\s]*", re.I)


def without_password(url: str) -> str:
    """Write an address as it may be shown."""
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def shape_of(arguments: Any, schema: Mapping[str, Any]) -> Any:
    """Describe arguments by kind and size; names are shown only where the schema has them, others are counted."""
    if not isinstance(arguments, Mapping):
        return _kind(arguments, {}, 0)
    return _object(arguments, schema, 0)


def _object(value: Mapping[Any, Any], schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    known = schema.get("properties")
    known = known if isinstance(known, Mapping) else {}
    shown = {name: _kind(value[name], known[name], depth + 1) for name in list(known)[:_MOST] if name in value}
    other = sum(1 for name in value if name not in known)
    return {**shown, **({"…": f"{other} more"} if other else {})}


def _kind(value: Any, schema: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return f"text of {len(value)}"
    if isinstance(value, Mapping):
        below = schema if isinstance(schema, Mapping) else {}
        return _object(value, below, depth) if depth < _DEEPEST else f"object of {len(value)}"
    return f"list of {len(value)}" if isinstance(value, (list, tuple)) else type(value).__name__
