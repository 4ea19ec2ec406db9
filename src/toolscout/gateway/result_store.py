"""Results over the byte limit: the client gets a part, and can read the whole result from a store for a while."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cachetools import TTLCache

from toolscout.gateway.identity import Owner, owner_of
from toolscout.models import Caller

URI_PREFIX = "toolscout://results/"
_NOTICE_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredResult:
    owner: Owner
    text: str
    size: int


class ResultStore:
    """A cache of whole results, limited in bytes and in time, with addresses that nobody can guess."""

    def __init__(self, *, ttl_s: float, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._results: TTLCache[str, _StoredResult] = TTLCache(
            maxsize=max_bytes, ttl=ttl_s, timer=clock, getsizeof=lambda result: result.size
        )

    def keep(self, result: Mapping[str, Any], caller: Caller) -> str:
        """Store a result for its caller and return the address to read it at."""
        text = _compact(result)
        uri = URI_PREFIX + secrets.token_urlsafe(24)
        with suppress(ValueError):  # it is larger than the whole cache, so it cannot be read later
            self._results[uri] = _StoredResult(
                owner=owner_of(caller), text=text, size=len(text.encode("utf-8", "replace"))
            )
        return uri

    def read(self, uri: str, caller: Caller) -> str | None:
        """Return a whole result as JSON, or None if it has expired, never existed, or belongs to another caller."""
        stored = self._results.get(uri)
        return stored.text if stored is not None and stored.owner == owner_of(caller) else None


def byte_size(result: Any) -> int:
    """Count the bytes of a result as compact JSON."""
    return len(_compact(result).encode("utf-8", "replace"))


def cut_result(result: Mapping[str, Any], max_bytes: int, rest_uri: str) -> dict[str, Any]:
    """Cut a result to the byte limit: shorten its text, and drop other content that does not fit.

    A notice and a resource link say that the whole result can be read at `rest_uri`.
    """
    total = byte_size(result)
    room = max(max_bytes - _NOTICE_BYTES, 0)
    content: list[Any] = []
    for item in result.get("content") or []:
        cost = byte_size(item) + 1
        if cost <= room:
            content.append(item)
            room -= cost
        elif isinstance(item, Mapping) and item.get("type") == "text" and room > 0:
            content.append({**item, "text": _cut_text(str(item.get("text", "")), room)})
            room = 0
        else:
            room = 0
        if room == 0:
            break
    notice = f"the result has {total:,} bytes, over the cap of {max_bytes:,}; read the rest at {rest_uri}"
    content.append({"type": "text", "text": f"[cut by the gateway: {notice}]"})
    content.append({"type": "resource_link", "uri": rest_uri, "name": "whole result", "mimeType": "application/json"})
    other_fields = {name: value for name, value in result.items() if name not in ("content", "structuredContent")}
    return {**other_fields, "content": content}


def _cut_text(text: str, budget: int) -> str:
    """Cut a text between characters so that it fits the budget in bytes as JSON."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if byte_size({"type": "text", "text": text[:middle]}) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
