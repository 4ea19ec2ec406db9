"""Fetch: ask each source for its tools and prepare what has changed, off the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from toolscout.errors import BadToolError, ServerUnavailableError
from toolscout.indexing.prepare import PreparedServer, prepare_server, unchanged_server
from toolscout.indexing.trust import PIN_KIND, definition_of, read_pin, write_pin
from toolscout.models import Dropped, Pin, Scope
from toolscout.ports import Store, ToolSource
from toolscout.settings import Settings
from toolscout.tool_keys import assign_slugs, server_slug


async def fetch_servers(
    store: Store, sources: Sequence[ToolSource], scope: Scope, settings: Settings, *, strict: bool = False
) -> tuple[list[PreparedServer], list[Dropped]]:
    """Return each server's part of the publication, and which slugs collided; strict refuses all for one bad tool.

    One of several servers that cannot be listed now keeps the tools that it had, and is reported.
    """
    known = {server.key: server.title for server in await store.servers(scope)}
    slugs = assign_slugs((source.server.title for source in sources), known)
    collisions = slug_collisions(slugs, known)
    prepared = []
    for source in sources:
        server = replace(source.server, key=slugs[source.server.title])
        published = await store.stamps(scope, server.key)
        try:
            raw = await source.list_tools()
        except ServerUnavailableError as error:
            if len(sources) == 1:
                raise
            part = unchanged_server(server, published, error.message)
        else:
            pins = {item.name: read_pin(item) for item in await store.records(PIN_KIND, scope, f"{server.key}__")}
            part = await asyncio.to_thread(
                prepare_server, server, raw, published, settings, owner=scope.owner, pins=pins, now=time.time()
            )
            fresh = {pin.key: pin for pin in part.pins}
            await keep_pins(store, scope, fresh, pins, shown=part.changed_definitions | (published.keys() - part.keys))
        if strict and part.dropped:
            first = part.dropped[0]
            raise BadToolError(f"{first.where}: {first.reason}", hint="correct it, or do not be strict")
        prepared.append(part)
    return prepared, collisions


def slug_collisions(slugs: Mapping[str, str], known: Mapping[str, str]) -> list[Dropped]:
    """Report the titles whose natural slug belongs to another server, given title -> slug and slug -> known title."""
    owners = {**known, **{slug: title for title, slug in slugs.items()}}
    return [
        Dropped(where=title, reason=f"its slug {natural!r} belongs to {owners[natural]!r}; it is {slug!r}")
        for title, slug in slugs.items()
        if owners.get(natural := server_slug(title), title) != title
    ]


async def keep_pins(
    store: Store, scope: Scope, fresh: Mapping[str, Pin], pins: Mapping[str, Pin], *, shown: AbstractSet[str]
) -> None:
    """Keep fresh pins; where a definition is offered in place of a pinned one, or goes, keep that one to be shown."""
    known = dict(fresh)
    unkept = {key for key in shown if key in pins and pins[key].before is None}
    if unkept:
        for tool in await store.stored_tools(scope):
            if tool.key in unkept and tool.fingerprint == pins[tool.key].fingerprint:
                known[tool.key] = replace(known.get(tool.key, pins[tool.key]), before=definition_of(tool))
    if known:
        await store.put_records([write_pin(scope, pin) for pin in known.values()])
