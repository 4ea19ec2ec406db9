"""Which slug each server gets: two that would share one are kept apart, and the summary says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from toolscout.models import Dropped
from toolscout.tool_keys import apart, server_slug


def assign_slugs(titles: Iterable[str], known: Mapping[str, str]) -> tuple[dict[str, str], list[Dropped]]:
    """Return title -> slug, given the slug -> title of servers already in the catalogue, and what collided.

    A title that is its own slug comes first, then the order of titles: the same titles get the same slugs always.
    A server that has a slug keeps it, also when the one that it collided with has gone.
    """
    taken = dict(known)
    given = {title: slug for slug, title in known.items()}
    slugs: dict[str, str] = {}
    collisions: list[Dropped] = []
    for title in sorted(set(titles), key=lambda item: (server_slug(item) != item, item)):
        own = slug = server_slug(title)
        while title not in given and taken.get(slug, title) != title:
            slug = apart(slug, title)
        slug = given.get(title, slug)
        if taken.get(own, title) != title:
            collisions.append(
                Dropped(where=title, reason=f"its slug {own!r} belongs to {taken[own]!r}; it is {slug!r}")
            )
        taken[slug] = title
        slugs[title] = slug
    return slugs, collisions
