"""Results within the byte cap: they pass unchanged below it; above, they are cut with a notice that says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_NOTICE_BYTES = 512


def size_of(result: Mapping[str, Any]) -> int:
    """Count the bytes of a result as compact JSON."""
    return len(json.dumps(result, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace"))


def shape_result(result: Mapping[str, Any], max_bytes: int, rest_uri: str) -> dict[str, Any]:
    """Return a result that is over the cap, cut to it: text from the front, what cannot be cut left out, and a notice.

    The whole can be read at `rest_uri`; the notice and a resource link say so.
    """
    total = size_of(result)
    left = max(max_bytes - _NOTICE_BYTES, 0)
    kept: list[Any] = []
    for item in result.get("content") or []:
        cost = size_of(item) + 1
        if cost <= left:
            kept.append(item)
            left -= cost
        elif isinstance(item, Mapping) and item.get("type") == "text" and left > 0:
            kept.append({**item, "text": _cut(str(item.get("text", "")), left)})
            left = 0
        else:
            left = 0
        if left == 0:
            break
    notice = f"the result has {total:,} bytes, over the cap of {max_bytes:,}; read the rest at {rest_uri}"
    kept.append({"type": "text", "text": f"[cut by the gateway: {notice}]"})
    kept.append({"type": "resource_link", "uri": rest_uri, "name": "whole result", "mimeType": "application/json"})
    shaped = {name: value for name, value in result.items() if name not in ("content", "structuredContent")}
    return {**shaped, "content": kept}


def _cut(text: str, budget: int) -> str:
    """Cut a text so that it fits the budget in bytes as JSON, between characters."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if size_of({"type": "text", "text": text[:middle]}) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low]
