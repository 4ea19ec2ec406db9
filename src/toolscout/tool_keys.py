"""Keys: `<server>__<tool>`. The server part is a slug without double underscores, so the first `__` splits a key."""

from __future__ import annotations

import hashlib
import re

SEPARATOR = "__"

_FOREIGN = re.compile(r"[^A-Za-z0-9.\-_]+")
_UNDERSCORES = re.compile(r"_{2,}")


def server_slug(title: str) -> str:
    """Map an operator's name for a server to letters, digits, `.`, `-` and single inner underscores."""
    slug = _UNDERSCORES.sub("_", _FOREIGN.sub("-", title)).strip("_-")
    return slug or f"server-{_digest(title)}"


def apart(slug: str, title: str) -> str:
    """Return a slug for a server whose own is taken by another title: stable, whatever came first."""
    return f"{slug}-{_digest(title)}"


def tool_key(server: str, name: str) -> str:
    """Join a server's slug and a tool's name."""
    return f"{server}{SEPARATOR}{name}"


def split_key(key: str) -> tuple[str, str]:
    """Split a key into the server's slug and the tool's name (an empty slug when there is no separator)."""
    server, separator, name = key.partition(SEPARATOR)
    return (server, name) if separator else ("", key)


def _digest(title: str) -> str:
    return hashlib.blake2b(title.encode("utf-8", "surrogatepass"), digest_size=3).hexdigest()
