"""Results over the byte cap, kept whole for a while: only their owner can read them, and the oldest go first."""

from __future__ import annotations

import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolscout.gateway.identity import Owner, owner_of
from toolscout.models import Caller

PREFIX = "toolscout://results/"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    owner: Owner
    text: str
    size: int
    until: float


class Results:
    """A bounded shelf of whole results under names that cannot be guessed."""

    def __init__(self, *, ttl_s: float, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Say how long and how much is kept."""
        self._ttl_s = ttl_s
        self._max_bytes = max_bytes
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    def keep(self, result: Mapping[str, Any], caller: Caller) -> str:
        """Keep a result for its caller and return the address to read it at."""
        text = json.dumps(result, separators=(",", ":"), ensure_ascii=False)
        size = len(text.encode("utf-8", "replace"))
        uri = PREFIX + secrets.token_urlsafe(24)
        self._kept[uri] = _Kept(owner=owner_of(caller), text=text, size=size, until=self._clock() + self._ttl_s)
        self._bytes += size
        self._drop_old()
        return uri

    def read(self, uri: str, caller: Caller) -> str | None:
        """Return the whole result as JSON text; None when it is gone, was never there, or is another's."""
        self._drop_old()
        kept = self._kept.get(uri)
        return kept.text if kept is not None and kept.owner == owner_of(caller) else None

    def _drop_old(self) -> None:
        while self._kept:
            oldest = next(iter(self._kept.values()))
            if self._bytes <= self._max_bytes and oldest.until > self._clock():
                return
            self._kept.popitem(last=False)
            self._bytes -= oldest.size
