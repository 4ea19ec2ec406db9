"""The catalogue in PostgreSQL, shared by any number of replicas.

A publication is one transaction. A reader, and a process killed at any moment, finds either the old generation or the
new one, never a mixture. Tenants of up to `resident_tools` tools are searched in memory, exactly as with SQLite, and
are still answered while the database is down. Larger tenants are searched in the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import psycopg

from toolscout.errors import StoreError
from toolscout.models import (
    Caller,
    Candidates,
    Facets,
    Filter,
    Intent,
    Overview,
    Publication,
    Record,
    Retention,
    Scope,
    Server,
    Tool,
)
from toolscout.ports import AccessFilter
from toolscout.settings import Settings
from toolscout.storage.index.segment_cache import SegmentCache
from toolscout.storage.postgres import hnsw, reads, writes
from toolscout.storage.postgres.in_database import InDatabaseSearch
from toolscout.storage.postgres.notifications import ChangeListener
from toolscout.storage.postgres.pool import ConnectionPool, fetch_one
from toolscout.storage.postgres.reads import Generations
from toolscout.storage.postgres.records import find_record, find_records, put_records, remove_record
from toolscout.storage.postgres.schema import migrate
from toolscout.storage.postgres.tenant_view import NotInDatabaseError

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from toolscout.models import FloatArray
    from toolscout.storage.index.snapshot import Snapshot

_Result = TypeVar("_Result")
MANY_ENTRIES = 1_000
"""After a publication of so many tools, `settle()` cleans the word index and updates the planner's statistics."""

_CLEAN_UP_S = 3_600.0


class PostgresStore:
    """A Store in a PostgreSQL database with pgvector."""

    def __init__(self, url: str, access: AccessFilter, settings: Settings) -> None:
        self._settings = settings
        self.pool = ConnectionPool(url, settings.store_connections)
        self._access = access
        self.segments = SegmentCache(access, max_rows=settings.loaded_tools)
        self.in_database = InDatabaseSearch(self.pool, access, settings)
        self._listener = ChangeListener(self.pool, self.apply, self._mark_stale)
        self._published: set[Scope] = set()
        self.tenants_in_database: set[str] = set()
        self._graphs: set[str] = set()
        self._loading: dict[Scope, asyncio.Task[None]] = {}
        self._clean_up_task: asyncio.Task[None] | None = None
        self._stale = False
        self._open = False

    async def open(self) -> None:
        """Connect, migrate, and load the shared scope of the local tenant."""
        db = await self.pool.connect()
        self.pool.note_answer()
        try:
            self._listener.start()
            await self.pool.open(await self._migrate(db))
        finally:
            await db.close()
        await self.apply(await self.pool.run(reads.generations))
        self._open = True
        await self._load(Scope())
        self._clean_up_task = asyncio.create_task(self._keep_clean(), name="toolscout-clean-up")

    async def close(self) -> None:
        """Close every connection."""
        self._open = False
        await self._listener.stop()
        tasks = [*self._loading.values(), *([self._clean_up_task] if self._clean_up_task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.pool.close()

    async def ping(self) -> None:
        """Query the database, unless it has just answered: a busy pool may have no connection free for that."""
        if not (self._open and self.pool.alive):
            await self.pool.run(lambda db: db.execute("SELECT 1"))

    async def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        """Take or renew a lease by the clock of the database, which all replicas share."""

        async def take(db: AsyncConnection) -> bool:
            (lease,) = await fetch_one(db, "SELECT take_lease(%s, %s, %s)", (name, holder, ttl_s))
            return lease is not None

        return await self.pool.run(take)

    async def release(self, name: str, holder: str) -> None:
        """Release a lease before it expires."""

        async def give(db: AsyncConnection) -> None:
            await db.execute("SELECT give_lease(%s, %s)", (name, holder))

        await self.pool.run(give)

    async def scopes(self) -> Sequence[Scope]:
        """Return every scope of all tenants."""
        return list(await self.pool.run(reads.generations))

    async def record(self, kind: str, name: str) -> Record | None:
        """Return one record by its name."""
        return await find_record(self.pool, kind, name)

    async def records(self, kind: str, scope: Scope | None = None, prefix: str = "") -> Sequence[Record]:
        """Return the records of a kind whose names have the prefix."""
        return await find_records(self.pool, kind, scope, prefix)

    async def clean_up(self, retention: Retention) -> None:
        """Delete the vectors and pins of tools that are long gone, old leases, and scopes without tools."""
        await self.pool.run(lambda db: writes.clean_up(db, retention))

    async def put_records(self, records: Sequence[Record], *, replace: bool = True) -> None:
        """Store records."""
        await put_records(self.pool, records, replace=replace)

    async def remove_record(self, kind: str, scope: Scope, name: str) -> None:
        """Remove one record."""
        await remove_record(self.pool, kind, scope, name)

    async def overview(self, caller: Caller) -> Overview:
        """Return the totals of what the caller may see."""
        return await self._read(
            caller,
            lambda snapshot: snapshot.overview(caller, stale=self._stale),
            lambda: self.in_database.overview(caller),
        )

    async def stamps(self, scope: Scope, server: str) -> Mapping[str, str]:
        """Return the stamp of each published tool of a server, by key."""
        return await self.pool.run(lambda db: reads.stamps(db, scope, server), tenant=scope.tenant)

    async def servers(self, scope: Scope) -> Sequence[Server]:
        """Return the servers of a scope."""
        return await self.pool.run(lambda db: reads.servers(db, scope), tenant=scope.tenant)

    async def switches(self, scope: Scope) -> Mapping[str, bool]:
        """Return which tools were enabled or disabled by an operator, by key."""
        return await self.pool.run(lambda db: reads.switches(db, scope), tenant=scope.tenant)

    async def stored_tools(self, scope: Scope) -> Sequence[Tool]:
        """Return all published tools of a scope, disabled ones included."""
        return await self.pool.run(lambda db: reads.stored_tools(db, scope), tenant=scope.tenant)

    async def vectors(self, model_id: str, text_hashes: Sequence[str]) -> Mapping[str, FloatArray]:
        """Return the stored vectors of these texts, by text hash."""
        return await self.pool.run(lambda db: reads.vectors(db, model_id, text_hashes))

    async def missing_vectors(self, model_id: str, text_hashes: Sequence[str]) -> set[str]:
        """Return the hashes of the texts that have no vector of this model yet."""
        return await self.pool.run(lambda db: reads.missing_vectors(db, model_id, text_hashes))

    async def add_vectors(self, model_id: str, text_hashes: Sequence[str], vectors: FloatArray) -> None:
        """Store vectors in half precision, by model and text hash."""
        where = self.pool.where
        await self.pool.run(lambda db: writes.add_vectors(db, model_id, text_hashes, vectors, where))

    async def publish(self, publication: Publication) -> int:
        """Replace whole servers in one transaction, and load the result."""
        tenant, resident_tools = publication.scope.tenant, self._settings.resident_tools
        generation = await self.pool.run(lambda db: writes.publish(db, publication, resident_tools), tenant=tenant)
        if len(publication.entries) >= MANY_ENTRIES:
            with suppress(StoreError):  # the publication is done
                await self.pool.run(lambda db: db.execute("SELECT settle()"))
        await self.catch_up()
        if tenant in self.tenants_in_database and publication.model_id not in self._graphs:
            with suppress(StoreError):  # searches are exact until the next publication builds it
                if await hnsw.build(self.pool, publication.model_id, self.in_database.exact_rows):
                    self._graphs.add(publication.model_id)
        return generation

    async def remove_server(self, scope: Scope, server: str) -> int:
        """Remove a server and its tools."""
        return await self._remove(scope, server)

    async def remove_user(self, tenant: str, user: str) -> int:
        """Remove everything that one user added."""
        return await self._remove(Scope(tenant=tenant, owner=user), None)

    async def set_enabled(self, scope: Scope, keys: Sequence[str], enabled: bool) -> None:
        """Enable or disable tools in one transaction, and load the result once."""
        await self.pool.run(lambda db: writes.set_enabled(db, scope, keys, enabled), tenant=scope.tenant)
        await self.catch_up()

    async def unembedded(self, model_id: str) -> Sequence[Tool]:
        """Return the published tools whose text has no vector of this model."""
        return await self.pool.run(lambda db: reads.unembedded(db, model_id))

    async def candidates(
        self, caller: Caller, narrow: Filter, intents: Sequence[Intent], limit: int, model_id: str
    ) -> Candidates:
        """Return the union of the best by vector and by words, filtered inside the search."""
        return await self._read(
            caller,
            lambda snapshot: snapshot.candidates(caller, narrow, intents, limit, model_id),
            lambda: self.in_database.candidates(caller, narrow, intents, limit, model_id),
        )

    async def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words in the names of the tools that the caller may see."""
        return await self._read(
            caller, lambda snapshot: snapshot.vocabulary(caller), lambda: self.in_database.vocabulary(caller)
        )

    async def facets(self, caller: Caller, narrow: Filter) -> Sequence[Facets]:
        """Return the tools that the caller may see and that fit the filter, sorted by key."""
        return await self._read(
            caller, lambda snapshot: snapshot.facets(caller, narrow), lambda: self.in_database.facets(caller, narrow)
        )

    async def similar(self, caller: Caller, key: str, limit: int) -> Sequence[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first."""
        return await self._read(
            caller,
            lambda snapshot: snapshot.similar(caller, key, limit),
            lambda: self.in_database.similar(caller, key, limit),
        )

    async def tools(self, caller: Caller, keys: Sequence[str]) -> Mapping[str, Tool]:
        """Return the full definitions of those keys that the caller may see."""
        return await self._read(
            caller, lambda snapshot: snapshot.tools(caller, keys), lambda: self.in_database.tools(caller, keys)
        )

    async def _read(
        self,
        caller: Caller,
        in_memory: Callable[[Snapshot], _Result],
        in_database: Callable[[], Awaitable[_Result]],
    ) -> _Result:
        """Answer from memory, or from the database where the caller's tenant is too large for memory."""
        while True:
            snapshot = await self._current(caller)
            if snapshot is not None:
                return await snapshot.run(in_memory)
            try:
                return await in_database()
            except NotInDatabaseError:
                self.tenants_in_database.discard(caller.tenant)

    async def _current(self, caller: Caller) -> Snapshot | None:
        """Return the newest generation, loaded if necessary, or None for a tenant that is searched in the database.

        Under a policy every tenant is searched in memory: the database cannot count and suggest by rules.
        """
        if not self._open:
            raise StoreError.not_open(self.pool.where)
        while caller.tenant not in self.tenants_in_database or self._access.has_policy:
            scope = caller.scope if caller.scope in self._published else Scope(tenant=caller.tenant)
            missing = self.segments.missing(scope)
            if not missing:
                return self.segments.snapshot(scope)
            await self._load(missing[0])
        return None

    async def _load(self, scope: Scope) -> None:
        """Load the newest generation of a scope. A second call meanwhile waits for the same load."""
        if scope not in self._loading:
            task = self._loading[scope] = asyncio.create_task(self._load_now(scope))
            task.add_done_callback(lambda _: self._loading.pop(scope, None))
        await asyncio.shield(self._loading[scope])

    async def _load_now(self, scope: Scope) -> None:
        exact_rows, whole = self._settings.exact_rows, self._access.has_policy
        build = await self.pool.run(
            lambda db: reads.read_segment(db, scope, exact_rows, self.pool.where, whole=whole),
            tenant=scope.tenant,
            snapshot=True,
        )
        if build is None:
            self._search_in_database(scope.tenant)
        else:
            self.segments.put(await asyncio.to_thread(build))

    async def catch_up(self) -> None:
        """Load what this process has just published. It is committed, so a failure to read it back is no error."""
        try:
            await self.apply(await self.pool.run(lambda db: reads.generations(db, self._listener.since)))
        except StoreError:
            self._stale = True

    async def apply(self, news: Generations) -> None:
        """Reload the scopes in memory that have a newer generation in the database."""
        self._published |= news.keys()
        for scope, state in news.items():
            if not state.in_database:
                self.tenants_in_database.discard(scope.tenant)
            elif scope.tenant not in self.tenants_in_database:
                self._search_in_database(scope.tenant)
        if news:
            model_id = max(news.values()).model_id
            for scope in {**news, **dict.fromkeys(self.segments.of_other_models(model_id))}:
                generation = news[scope].generation if scope in news else 0
                for _ in range(2):  # a load that was under way may have begun before the publication, a second has not
                    if self.segments.is_outdated(scope, generation, model_id):
                        await self._load(scope)
        self._stale = False

    def _search_in_database(self, tenant: str) -> None:
        """Note that a tenant is searched in the database, and free the memory of its segments."""
        self.tenants_in_database.add(tenant)
        if self._access.has_policy:
            return
        for scope in [item for item in self.segments.loaded() if item.tenant == tenant]:
            self.segments.drop(scope)

    def _mark_stale(self) -> None:
        self._stale = self._open  # before the store is open, the schema may not exist yet

    async def _keep_clean(self) -> None:
        """Delete what has long been unused: once an hour, on the replica that takes the lease first."""
        while True:
            with suppress(StoreError):
                if await self.lease("tidy", uuid4().hex, _CLEAN_UP_S):
                    await self.clean_up(Retention(pins_s=self._settings.pins_kept_days * 86_400))
            await asyncio.sleep(_CLEAN_UP_S)

    async def _migrate(self, db: AsyncConnection) -> str:
        try:
            return await self.pool.bounded(migrate(db, self.pool.where), [db])
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise self.pool.failure(error) from error

    async def _remove(self, scope: Scope, server: str | None) -> int:
        resident_tools = self._settings.resident_tools
        removed = await self.pool.run(lambda db: writes.remove(db, scope, server, resident_tools), tenant=scope.tenant)
        await self.catch_up()
        return removed
