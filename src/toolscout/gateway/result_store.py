"""Results over the byte limit: the client gets a part, and can read the whole result from a store for a while."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cachetools import TTLCache

from toolscout.compact_json import byte_size
from toolscout.gateway.identity import Owner, owner_of
from toolscout.models import Caller

URI_PREFIX = "toolscout://results/"
_NOTICE_BYTES = 512
_OTHERS_SHARE = 8
"""What stands beside the content, each field for itself, has at most this part of the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredResult:
    owner: Owner
    text: bytes
    size: int


class ResultStore:
    """A cache of whole results, limited in bytes and in time, with addresses that nobody can guess."""

    def __init__(self, *, ttl_s: float, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._results: TTLCache[str, _StoredResult] = TTLCache(
            maxsize=max_bytes, ttl=ttl_s, timer=clock, getsizeof=lambda result: result.size
        )

    def keep(self, text: bytes, caller: Caller) -> str:
        """Store a result as JSON for its caller and return the address to read it at."""
        uri = URI_PREFIX + secrets.token_urlsafe(24)
        with suppress(ValueError):  # it is larger than the whole cache, so it cannot be read later
            self._results[uri] = _StoredResult(owner=owner_of(caller), text=text, size=len(text))
        return uri

    def read(self, uri: str, caller: Caller) -> str | None:
        """Return a whole result as JSON, or None if it has expired, never existed, or belongs to another caller."""
        stored = self._results.get(uri)
        mine = stored is not None and stored.owner == owner_of(caller)
        return stored.text.decode("utf-8", "replace") if stored is not None and mine else None


def cut_result(result: Mapping[str, Any], total: int, max_bytes: int, rest_uri: str) -> dict[str, Any]:
    """Cut a result of `total` bytes to the limit: shorten its text, and drop other content that does not fit.

    A notice and a resource link say that the whole result can be read at `rest_uri`.
    """
    room = max(max_bytes - _NOTICE_BYTES, 0)
    others: dict[str, Any] = {}
    for name, value in result.items():
        if name in ("content", "structuredContent"):
            continue
        cost = byte_size({name: value})
        if cost <= min(room, max_bytes // _OTHERS_SHARE):
            others[name] = value
            room -= cost
    content: list[Any] = []
    for item in result.get("content") or []:
        text = item.get("text") if isinstance(item, Mapping) else None
        cost = len(text) if isinstance(text, str) and len(text) > room else byte_size(item) + 1
        if cost <= room:
            content.append(item)
            room -= cost
            continue
        if isinstance(item, Mapping) and item.get("type") == "text":
            content.append({"type": "text", "text": _cut_text(str(item.get("text", "")), room)})
        break
    notice = f"the result has {total:,} bytes, over the cap of {max_bytes:,}; read the rest at {rest_uri}"
    content.append({"type": "text", "text": f"[cut by the gateway: {notice}]"})
    content.append({"type": "resource_link", "uri": rest_uri, "name": "whole result", "mimeType": "application/json"})
    return {**others, "content": content}


def _cut_text(text: str, budget: int) -> str:
    """Cut a text between characters so that it fits the budget in bytes as JSON."""
    low, high = 0, min(len(text), max(budget, 0))
    while low < high:
        middle = (low + high + 1) // 2
        if byte_size({"type": "text", "text": text[:middle]}) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low]
