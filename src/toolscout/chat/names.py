"""Names that both chat APIs accept, each of which leads back to one key."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LONGEST = 64
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_MARKED = re.compile(r"_[0-9a-f]{8}\Z")


def model_name(key: str) -> str:
    """Write a key as both APIs accept it, at most 64 letters, digits, `_` and `-`; the same key always the same way.

    A key that looks like such a writing is marked as well, so that no tool can take the name of another.
    """
    legal = _ILLEGAL.sub("_", key)
    return key if legal == key and len(key) <= LONGEST and not _MARKED.search(key) else marked(legal, key)


def model_names(keys: Iterable[str]) -> dict[str, str]:
    """Return name -> key; of two keys that would share a name, the first has it."""
    names: dict[str, str] = {}
    for key in keys:
        names.setdefault(model_name(key), key)
    return names


def marked(legal: str, own: str) -> str:
    """End what had to be changed in a mark of what it was, within the length that the APIs accept."""
    mark = hashlib.blake2b(own.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{legal[: LONGEST - len(mark) - 1]}_{mark}"
