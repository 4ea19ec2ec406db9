"""Tool names that both chat APIs accept. Each name belongs to exactly one key."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LONGEST = 64
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_HASHED = re.compile(r"_[0-9a-f]{8}\Z")


def model_name(key: str) -> str:
    """Return the name of a key that both APIs accept: at most 64 letters, digits, `_` and `-`.

    A name that differs from its key ends in a hash of the key. A key that already ends like that gets a hash too, so no
    tool can take the name of another.
    """
    legal = _ILLEGAL.sub("_", key)
    return key if legal == key and len(key) <= LONGEST and not _HASHED.search(key) else with_hash(legal, key)


def model_names(keys: Iterable[str]) -> dict[str, str]:
    """Return name -> key. If two keys have the same name, the first one keeps it."""
    names: dict[str, str] = {}
    for key in keys:
        names.setdefault(model_name(key), key)
    return names


def with_hash(legal: str, original: str) -> str:
    """Append a short hash of the original to a name that had to be changed, within the length that the APIs accept."""
    digest = hashlib.blake2b(original.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{legal[: LONGEST - len(digest) - 1]}_{digest}"
