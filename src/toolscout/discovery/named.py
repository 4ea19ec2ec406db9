"""The servers and tags that a request names: one of which the caller may see nothing is told, never taken for empty."""

from __future__ import annotations

from collections.abc import Sequence

from toolscout.discovery.browse import count_tags
from toolscout.discovery.suggest import did_you_mean
from toolscout.errors import UnknownServerError, UnknownTagError
from toolscout.models import Caller, Filter
from toolscout.ports import Store

_NAMED = 12


async def check_servers(store: Store, servers: Sequence[str], caller: Caller) -> None:
    """Refuse a server, by slug or title, that has no tool for this caller; only their own servers are named."""
    known = (await store.overview(caller)).servers if servers else ()
    for name in dict.fromkeys(servers):
        if name not in known and not await store.facets(caller, Filter(servers=(name,))):
            raise UnknownServerError(
                f"no tool is of a server {name!r}",
                hint=_hint("servers", known),
                suggestions=did_you_mean(name, known),
            )


async def check_tags(store: Store, tags: Sequence[str], caller: Caller) -> None:
    """Refuse a tag that no tool carries for this caller; asked where nothing was found, as all tags are looked at."""
    known = {item.name.casefold(): item.name for item in count_tags(await store.facets(caller, Filter()))}
    for name in tags:
        if name.casefold() not in known:
            raise UnknownTagError(
                f"no tool carries a tag {name!r}",
                hint=_hint("tags", tuple(known.values())),
                suggestions=did_you_mean(name, known.values()),
            )


def _hint(what: str, known: Sequence[str]) -> str:
    shown = ", ".join(known[:_NAMED]) + (", ..." if len(known) > _NAMED else "")
    return f"leave it away, or use one of the {what}: {shown}" if known else "leave it away"
