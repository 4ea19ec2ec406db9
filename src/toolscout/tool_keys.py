"""Keys: `<server>__<tool>`. The server part is a slug without double underscores, so the first `__` splits a key."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

SEPARATOR = "__"

_FOREIGN = re.compile(r"[^A-Za-z0-9.\-_]+")
_UNDERSCORES = re.compile(r"_{2,}")


def server_slug(title: str) -> str:
    """Map an operator's name for a server to letters, digits, `.`, `-` and single inner underscores."""
    slug = _UNDERSCORES.sub("_", _FOREIGN.sub("-", title)).strip("_-")
    return slug or f"server-{_digest(title)}"


def add_suffix(slug: str, title: str) -> str:
    """Return another slug for a server whose own slug belongs to another title. It depends on the title alone."""
    return f"{slug}-{_digest(title)}"


def assign_slugs(titles: Iterable[str], stored_titles: Mapping[str, str]) -> dict[str, str]:
    """Return title -> slug, given the slug -> title of servers that have a slug already.

    The same titles always get the same slugs: a title that is its own slug comes first, then alphabetical order. A
    server keeps its slug, even after the server that it collided with is gone.
    """
    owners = dict(stored_titles)
    stored_slugs = {title: slug for slug, title in stored_titles.items()}
    slugs: dict[str, str] = {}
    for title in sorted(set(titles), key=lambda item: (server_slug(item) != item, item)):
        slug = stored_slugs.get(title) or server_slug(title)
        while owners.get(slug, title) != title:
            slug = add_suffix(slug, title)
        owners[slug] = title
        slugs[title] = slug
    return slugs


def tool_key(server: str, name: str) -> str:
    """Join a server's slug and a tool's name."""
    return f"{server}{SEPARATOR}{name}"


def split_key(key: str) -> tuple[str, str]:
    """Split a key into the server's slug and the tool's name (an empty slug when there is no separator)."""
    server, separator, name = key.partition(SEPARATOR)
    return (server, name) if separator else ("", key)


def _digest(title: str) -> str:
    return hashlib.blake2b(title.encode("utf-8", "surrogatepass"), digest_size=3).hexdigest()
