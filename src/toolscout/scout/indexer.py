"""The index pipeline: list the tools of some servers, prepare and judge them, embed what is missing, publish."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from toolscout.errors import BadToolError, ServerUnavailableError
from toolscout.indexing.embed import Embedded, embed_missing
from toolscout.indexing.enrich import enrich_tool, restamp
from toolscout.indexing.prepare import (
    Catalogued,
    PreparedServer,
    assemble,
    bound_number,
    prepare_server,
    unchanged_server,
)
from toolscout.indexing.publish import publish, read_pins, store_pins
from toolscout.models import LOCAL, Caller, Dropped, IndexReport, Overview, Scope, Server, Tool
from toolscout.policy.api_keys import KIND as KEY_KIND
from toolscout.ports import Embedder, Progress, Store, ToolSource
from toolscout.scout.examination import Examiner
from toolscout.scout.leases import HeldLeases, Leases
from toolscout.settings import Settings
from toolscout.telemetry import AuditLog, Metrics, span
from toolscout.tool_keys import assign_slugs, server_slug
from toolscout.worker import WorkerPool

_VECTORS = "(vectors)"
"""The lease for embedding the whole catalogue anew. No server can have this slug."""


class Indexer:
    """Changes the catalogue, of any tenant and user, always under the leases of the servers that it changes.

    It is used by the facade, by the sync with live servers, by decisions about definitions and by the archive import.
    """

    def __init__(
        self,
        *,
        store: Store,
        embedder: Embedder | None,
        settings: Settings,
        audit: AuditLog | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._settings = settings
        self._audit = audit or AuditLog()
        self._metrics = metrics or Metrics()
        self.workers = WorkerPool()
        """Processes for work on strangers' text. Whoever made the indexer closes them."""
        self._examiner = Examiner(self.workers, settings)
        self.leases = Leases(store, settings)

    async def index(
        self,
        sources: Sequence[ToolSource],
        scope: Scope,
        *,
        strict: bool = False,
        progress: Progress | None = None,
        leases: HeldLeases | None = None,
    ) -> IndexReport:
        """Index servers into one new generation of a scope. With `strict`, one bad tool refuses them all.

        If one of several servers cannot be listed now, it keeps the tools that it had, and the report says so. With
        `leases`, the sources are live servers whose slugs are fixed, and the caller holds their leases.
        """
        with span("index", {"toolscout.servers": len(sources)}) as current:
            report = await self._index(sources, scope, strict=strict, progress=progress, leases=leases)
            current.set({"toolscout.tools": report.total, "toolscout.embedded": report.embedded})
        self._metrics.record_index(report)
        return report

    async def _index(
        self,
        sources: Sequence[ToolSource],
        scope: Scope,
        *,
        strict: bool,
        progress: Progress | None,
        leases: HeldLeases | None,
    ) -> IndexReport:
        started = time.perf_counter()
        live = leases is not None
        async with self._hold_slugs(sources, scope, leases) as (slugs, collisions, leases):
            before = await self._store.overview(_caller(scope))
            prepared = [
                await self._prepare(source, slugs[source.server.title], scope, alone=len(sources) == 1, live=live)
                for source in sources
                if source.server.title in slugs
            ]
            if strict:
                _refuse_dropped(prepared)
            embedded = await embed_missing(self._store, self._embedder, prepared, before.model_id, progress)
            generation = await self._publish_changes(prepared, leases, embedded, before)
        return IndexReport(
            new=sum(part.new for part in prepared),
            changed=sum(part.changed for part in prepared),
            unchanged=sum(len(part.unchanged) for part in prepared),
            removed=sum(part.removed for part in prepared),
            embedded=embedded.made,
            unembedded=embedded.missing,
            dropped=tuple(item for part in prepared for item in part.dropped),
            collisions=tuple(collisions),
            look_alikes=tuple(item for part in prepared for item in part.look_alikes),
            quarantined=tuple(item for part in prepared for item in part.quarantined),
            offered=tuple(sorted(key for part in prepared for key in part.changed_definitions)),
            generation=generation,
            took_ms=(time.perf_counter() - started) * 1_000,
            listed=frozenset((scope.tenant, key) for part in prepared for key in part.keys),
        )

    async def update_vectors(self, progress: Progress | None = None) -> int:
        """Embed everything anew if the vectors are of another model. One process at a time does it, others wait."""
        while await self._has_other_vectors():
            async with self.leases.try_hold(Scope(), [_VECTORS]) as leases:
                if leases.until and await self._has_other_vectors():
                    return (await self.index([], Scope(), progress=progress)).embedded
            await asyncio.sleep(self.leases.retry_s)
        return 0

    async def _has_other_vectors(self) -> bool:
        model_id = (await self._store.overview(Caller())).model_id
        return self._embedder is not None and model_id not in ("", self._embedder.model_id)

    async def republish(self, tools: Sequence[Tool], stored_tools: Mapping[str, Tool], leases: HeldLeases) -> None:
        """Publish tools of a scope with a new verdict. `stored_tools` are all tools of the scope as they are now."""
        scope = leases.scope
        servers = {server.key: server for server in await self._store.servers(scope)}
        prepared = []
        for slug in sorted({tool.server for tool in tools}):
            stamps = await self._store.stamps(scope, slug)
            entries = tuple(
                replace(enrich_tool(tool), stamp=restamp(tool, stored_tools[tool.key], stamps[tool.key]))
                for tool in tools
                if tool.server == slug
            )
            unchanged = frozenset(stamps) - {entry.tool.key for entry in entries}
            prepared.append(PreparedServer(server=servers[slug], entries=entries, unchanged=unchanged))
        overview = await self._store.overview(_caller(scope))
        await self.publish(prepared, leases, model_id=overview.model_id)

    async def publish(
        self,
        prepared: Sequence[PreparedServer],
        leases: HeldLeases,
        *,
        model_id: str,
        everywhere: bool = False,
        switches: Mapping[str, bool] | None = None,
    ) -> int:
        """Publish prepared servers, whose leases are held, and return the number of the new generation."""
        return await publish(
            self._store, leases.scope, prepared, model_id=model_id, everywhere=everywhere, switches=switches
        )

    async def remove_server(self, scope: Scope, server: str, leases: HeldLeases | None = None) -> int:
        """Remove a server and its tools from a scope. Return how many tools were removed."""
        if leases is None:
            async with self.leases.hold(scope, [server]) as own_leases:
                return await self.remove_server(scope, server, own_leases)
        self._audit.write_act("catalogue.remove", scope, server=server)
        return await self._store.remove_server(scope, server)

    async def remove_user(self, tenant: str, user: str) -> int:
        """Remove everything that one user added. Return how many tools were removed."""
        scope = Scope(tenant=tenant, owner=user)
        async with self.leases.hold(scope, await self.titles(scope)):
            self._audit.write_act("catalogue.remove", scope)
            return await self._store.remove_user(tenant, user)

    async def tenants(self) -> frozenset[str]:
        """Return the tenants that the store knows: those with tools or API keys, and the local one."""
        scopes = [*await self._store.scopes(), *(record.scope for record in await self._store.records(KEY_KIND))]
        return frozenset({LOCAL, *(scope.tenant for scope in scopes)})

    async def users_of(self, servers: AbstractSet[str]) -> frozenset[tuple[Scope, str]]:
        """Return the users who have tools of their own at these servers."""
        scopes = [scope for scope in await self._store.scopes() if scope.owner is not None] if servers else []
        return frozenset([(scope, key) for scope in scopes for key in servers & (await self.titles(scope)).keys()])

    async def titles(self, scope: Scope) -> dict[str, str]:
        """Return slug -> title of the servers of a scope."""
        return {server.key: server.title for server in await self._store.servers(scope)}

    async def slug_of(self, scope: Scope, server: str) -> str:
        """Return the slug of a server that is named by its slug or its title."""
        titles = await self.titles(scope)
        return next((slug for slug, title in titles.items() if server in (slug, title)), server)

    @asynccontextmanager
    async def _hold_slugs(
        self, sources: Sequence[ToolSource], scope: Scope, leases: HeldLeases | None
    ) -> AsyncIterator[tuple[Mapping[str, str], list[Dropped], HeldLeases]]:
        """Assign a slug to every source and hold its lease. Yield title -> slug, the collisions, and the leases."""
        if leases is not None:
            yield *_fixed_slugs([source.server for source in sources], await self.titles(scope)), leases
            return
        titles = [source.server.title for source in sources]
        slugs = assign_slugs(titles, await self.titles(scope))
        while True:
            async with self.leases.hold(scope, slugs.values()) as new_leases:
                stored_titles = await self.titles(scope)
                if slugs == (slugs := assign_slugs(titles, stored_titles)):
                    yield slugs, slug_collisions(slugs, stored_titles), new_leases
                    return
                # Meanwhile another process added a server that has one of these slugs now.

    async def _prepare(self, source: ToolSource, slug: str, scope: Scope, *, alone: bool, live: bool) -> PreparedServer:
        """List one server, prepare and judge its tools off the event loop, and store their pins."""
        server = replace(source.server, key=slug)
        stamps, pins = await self._store.stamps(scope, slug), await read_pins(self._store, scope, slug)
        try:
            definitions = await source.list_tools()
            if live:
                catalogued = Catalogued(stamps=stamps, pins=pins)
                bounded, dropped = bound_number(server, definitions, self._settings)
                examined = await self._examiner.examine(server, bounded, catalogued, owner=scope.owner)
                work = partial(assemble, server, examined, catalogued, self._settings, dropped=dropped)
        except ServerUnavailableError as error:
            if alone and not live:
                raise
            return unchanged_server(server, stamps, error.message)
        if not live:
            work = partial(prepare_server, server, definitions, stamps, self._settings, owner=scope.owner, pins=pins)
        prepared = await asyncio.to_thread(work, now=time.time())
        replaced = prepared.changed_definitions | (stamps.keys() - prepared.keys)
        await store_pins(self._store, scope, {pin.key: pin for pin in prepared.pins}, pins, replaced=replaced)
        return prepared

    async def _publish_changes(
        self, prepared: Sequence[PreparedServer], leases: HeldLeases, embedded: Embedded, before: Overview
    ) -> int:
        """Publish a new generation, unless nothing changed."""
        changed = any(part.entries or part.removed for part in prepared)
        new_model = embedded.model_id != before.model_id
        if not (changed or embedded.made or new_model):
            return before.generation
        everywhere = embedded.repaired or new_model
        return await self.publish(prepared, leases, model_id=embedded.model_id, everywhere=everywhere)


def slug_collisions(slugs: Mapping[str, str], stored_titles: Mapping[str, str]) -> list[Dropped]:
    """Report the titles whose natural slug belongs to another server, given title -> slug and slug -> stored title."""
    owners = {**stored_titles, **{slug: title for title, slug in slugs.items()}}
    return [
        Dropped(where=title, reason=f"its slug {natural!r} belongs to {owners[natural]!r}; it is {slug!r}")
        for title, slug in slugs.items()
        if owners.get(natural := server_slug(title), title) != title
    ]


def _fixed_slugs(servers: Sequence[Server], stored_titles: Mapping[str, str]) -> tuple[dict[str, str], list[Dropped]]:
    """Return title -> slug of live servers, without those whose slug belongs to another server of the scope.

    Calls are routed to a live server by its slug, so it must be the same in every scope.
    """
    slugs: dict[str, str] = {}
    omitted: list[Dropped] = []
    for server in servers:
        owner = stored_titles.get(server.key, server.title)
        if owner == server.title:
            slugs[server.title] = server.key
        else:
            reason = f"its slug {server.key!r} belongs to {owner!r}: rename one"
            omitted.append(Dropped(where=server.title, reason=reason))
    return slugs, [*slug_collisions(slugs, stored_titles), *omitted]


def _refuse_dropped(prepared: Sequence[PreparedServer]) -> None:
    for first in (item for part in prepared for item in part.dropped):
        raise BadToolError(f"{first.where}: {first.reason}", hint="correct it, or index without strict")


def _caller(scope: Scope) -> Caller:
    return Caller(tenant=scope.tenant, user=scope.owner)
