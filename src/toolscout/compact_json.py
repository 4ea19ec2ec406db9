"""Values as compact JSON, and how many bytes that has."""

from __future__ import annotations

import json
from typing import Any

import pydantic_core


def byte_size(value: Any) -> int:
    """Count the bytes of a value as compact JSON."""
    return len(compact_json(value))


def compact_json(value: Any) -> bytes:
    """Write a value as compact JSON."""
    try:
        return pydantic_core.to_json(value, inf_nan_mode="null")
    except ValueError:  # for instance half of a surrogate pair, which the other writer is slower to write
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
