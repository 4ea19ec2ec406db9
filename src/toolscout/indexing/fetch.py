"""Fetch: ask each source for its tools and prepare what has changed, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from toolscout.errors import BadToolError, ServerUnavailableError
from toolscout.indexing.assign import assign_slugs
from toolscout.indexing.prepare import Prepared, kept_as_it_was, prepare_server
from toolscout.models import Dropped, Scope
from toolscout.ports import Store, ToolSource
from toolscout.settings import Settings


async def fetch_servers(
    store: Store, sources: Sequence[ToolSource], scope: Scope, settings: Settings, *, strict: bool = False
) -> tuple[list[Prepared], list[Dropped]]:
    """Return each server's part of the publication, and which slugs collided; strict refuses all for one bad tool.

    One of several servers that cannot be listed now keeps the tools that it had, and is reported.
    """
    known = {server.key: server.title for server in await store.servers(scope)}
    slugs, collisions = assign_slugs((source.server.title for source in sources), known)
    prepared = []
    for source in sources:
        server = replace(source.server, key=slugs[source.server.title])
        published = await store.stamps(scope, server.key)
        try:
            raw = await source.list_tools()
        except ServerUnavailableError as error:
            if len(sources) == 1:
                raise
            part = kept_as_it_was(server, published, error.message)
        else:
            part = await asyncio.to_thread(prepare_server, server, raw, published, settings, owner=scope.owner)
        if strict and part.dropped:
            first = part.dropped[0]
            raise BadToolError(f"{first.where}: {first.reason}", hint="correct it, or do not be strict")
        prepared.append(part)
    return prepared, collisions
