"""The store of many replicas: PostgreSQL holds the catalogue, segments in memory answer what they can.

A publication is one transaction, so a reader, and a process killed at any moment, finds wholly the old or wholly the
new generation. Tenants of up to `resident_tools` tools are searched in memory, exactly as with SQLite, and go on being
answered while the database is away; larger ones are searched in the database.
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
    Scope,
    Server,
    Tool,
)
from toolscout.ports import Predicate
from toolscout.settings import Settings
from toolscout.storage.index.segment_cache import SegmentCache
from toolscout.storage.postgres import hnsw, reads, writes
from toolscout.storage.postgres.in_database import InDatabaseSearch, NotInDatabaseError, without_vectors
from toolscout.storage.postgres.notifications import ChangeListener, Changes
from toolscout.storage.postgres.pool import ConnectionPool
from toolscout.storage.postgres.records import find_record, find_records, put_records
from toolscout.storage.postgres.schema import migrate

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from toolscout.models import FloatArray
    from toolscout.storage.index.snapshot import Snapshot

_Result = TypeVar("_Result")
_INLINE_ROWS = 20_000
"""Up to this size a search takes about a millisecond: less than handing it to a thread and back would add."""
_MANY = 1_000
"""After a publication of so many tools the word index is put in order, and the planner told how large tables are."""

_TIDY_S = 3_600.0
_UNUSED = "7 days"


class PostgresStore:
    """A Store in a PostgreSQL database with pgvector."""

    def __init__(self, url: str, predicate: Predicate, settings: Settings) -> None:
        """Read the address; `open()` does the work."""
        self._settings = settings
        self.pool = ConnectionPool(url, settings.store_connections)
        self._predicate = predicate
        self.segments = SegmentCache(predicate, most_rows=settings.loaded_tools)
        self.in_database = InDatabaseSearch(self.pool, predicate, settings)
        self._listener = ChangeListener(self.pool, self._apply, self._lost)
        self._existing: set[Scope] = set()
        self.tenants_in_database: set[str] = set()
        self._graphs: set[str] = set()
        self._loading: dict[Scope, asyncio.Task[None]] = {}
        self._tidying: asyncio.Task[None] | None = None
        self._stale = False
        self._open = False

    async def open(self) -> None:
        """Connect, migrate, and load what everyone of the local tenant sees."""
        db = await self.pool.connect()
        self.pool.saw_life()
        try:
            self._listener.start()
            await self.pool.open(await self._migrated(db))
        finally:
            await db.close()
        await self._apply(await self.pool.run(reads.generations))
        self._open = True
        await self._load(Scope())
        self._tidying = asyncio.create_task(self._tidy(), name="toolscout-tidy")

    async def close(self) -> None:
        """Close every connection."""
        self._open = False
        await self._listener.stop()
        tasks = [*self._loading.values(), *([self._tidying] if self._tidying else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.pool.close()

    async def ping(self) -> None:
        """Ask for a sign of life, unless there was one just now: a busy database has no connection free for that."""
        if not (self._open and self.pool.alive):
            await self.pool.run(lambda db: db.execute("SELECT 1"))

    async def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        """Take or renew a lease by the clock of the database, which all replicas share."""

        async def take(db: AsyncConnection) -> bool:
            found = await (await db.execute("SELECT take_lease(%s, %s, %s)", (name, holder, ttl_s))).fetchone()
            return found is not None and found[0] is not None

        return await self.pool.run(take)

    async def release(self, name: str, holder: str) -> None:
        """Give a lease back."""

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
        """Return the records of a kind whose names begin so."""
        return await find_records(self.pool, kind, scope, prefix)

    async def put_records(self, records: Sequence[Record], *, replace: bool = True) -> None:
        """Keep records."""
        await put_records(self.pool, records, replace=replace)

    async def overview(self, caller: Caller) -> Overview:
        """Return what the caller can see in sum."""
        return await self._read(
            caller,
            lambda snapshot: snapshot.overview(caller, stale=self._stale),
            lambda: self.in_database.overview(caller),
        )

    async def stamps(self, scope: Scope, server: str) -> Mapping[str, str]:
        """Return key -> stamp for a server's published tools."""
        return await self.pool.run(lambda db: reads.stamps(db, scope, server), tenant=scope.tenant)

    async def servers(self, scope: Scope) -> Sequence[Server]:
        """Return the servers of a scope."""
        return await self.pool.run(lambda db: reads.servers(db, scope), tenant=scope.tenant)

    async def switches(self, scope: Scope) -> Mapping[str, bool]:
        """Return what was switched by hand."""
        return await self.pool.run(lambda db: reads.switches(db, scope), tenant=scope.tenant)

    async def stored_tools(self, scope: Scope) -> Sequence[Tool]:
        """Return all published tools of a scope."""
        return await self.pool.run(lambda db: reads.stored_tools(db, scope), tenant=scope.tenant)

    async def vectors(self, model_id: str, text_hashes: Sequence[str]) -> Mapping[str, FloatArray]:
        """Return the vectors that there are, by their texts."""
        return await self.pool.run(lambda db: reads.vectors(db, model_id, text_hashes))

    async def missing_vectors(self, model_id: str, text_hashes: Sequence[str]) -> set[str]:
        """Return those texts that have no vector of this model yet."""
        return await self.pool.run(lambda db: reads.missing_vectors(db, model_id, text_hashes))

    async def add_vectors(self, model_id: str, text_hashes: Sequence[str], vectors: FloatArray) -> None:
        """Keep vectors, as half-precision numbers, under (model, text)."""
        where = self.pool.where
        await self.pool.run(lambda db: writes.add_vectors(db, model_id, text_hashes, vectors, where))

    async def publish(self, publication: Publication) -> int:
        """Replace whole servers in one transaction and show the result."""
        tenant, most = publication.scope.tenant, self._settings.resident_tools
        generation = await self.pool.run(lambda db: writes.publish(db, publication, most), tenant=tenant)
        if len(publication.entries) >= _MANY:
            with suppress(StoreError):  # the publication stands
                await self.pool.run(_settle)
        await self._catch_up()
        if tenant in self.tenants_in_database and publication.model_id not in self._graphs:
            with suppress(StoreError):  # searches are exact until the next one builds it
                if await hnsw.build(self.pool, publication.model_id, self.in_database.exact_rows):
                    self._graphs.add(publication.model_id)
        return generation

    async def remove_server(self, scope: Scope, server: str) -> int:
        """Take a server and its tools out."""
        return await self._take_out(scope, server)

    async def remove_user(self, tenant: str, user: str) -> int:
        """Take everything out that one user added."""
        return await self._take_out(Scope(tenant=tenant, owner=user), None)

    async def set_enabled(self, scope: Scope, key: str, enabled: bool) -> None:
        """Switch one tool on or off."""
        await self.pool.run(lambda db: writes.switch(db, scope, key, enabled), tenant=scope.tenant)
        await self._catch_up()

    async def unembedded(self, model_id: str) -> Sequence[Tool]:
        """Return the published tools whose text has no vector of this model."""
        return await self.pool.run(lambda db: reads.unembedded(db, model_id))

    async def candidates(
        self, caller: Caller, narrow: Filter, intents: Sequence[Intent], limit: int, model_id: str
    ) -> Candidates:
        """Return the union of the best by vector and by words, filtered inside the search."""

        def here(held: Snapshot) -> Candidates:
            usable = intents if held.model_id == model_id else without_vectors(intents)
            return held.candidates(caller, narrow, usable, limit)

        return await self._read(
            caller, here, lambda: self.in_database.candidates(caller, narrow, intents, limit, model_id)
        )

    async def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words of the names that the caller may see."""
        return await self._read(
            caller, lambda held: held.vocabulary(caller), lambda: self.in_database.vocabulary(caller)
        )

    async def facets(self, caller: Caller, narrow: Filter) -> Sequence[Facets]:
        """Return what the caller may see, in the order of keys."""
        return await self._read(
            caller, lambda held: held.facets(caller, narrow), lambda: self.in_database.facets(caller, narrow)
        )

    async def similar(self, caller: Caller, key: str, limit: int) -> Sequence[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first."""
        return await self._read(
            caller, lambda held: held.similar(caller, key, limit), lambda: self.in_database.similar(caller, key, limit)
        )

    async def tools(self, caller: Caller, keys: Sequence[str]) -> Mapping[str, Tool]:
        """Return the full definitions of those keys that the caller may see."""
        return await self._read(
            caller, lambda snapshot: snapshot.tools(caller, keys), lambda: self.in_database.tools(caller, keys)
        )

    async def _read(
        self, caller: Caller, here: Callable[[Snapshot], _Result], there: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        """Answer from memory, or in the database where the caller's tenant is too large for that."""
        while True:
            held = await self._current(caller)
            if held is not None:
                return here(held) if len(held) <= _INLINE_ROWS else await asyncio.to_thread(here, held)
            try:
                return await there()
            except NotInDatabaseError:
                self.tenants_in_database.discard(caller.tenant)

    async def _current(self, caller: Caller) -> Snapshot | None:
        """Return the newest generation at hand, loading what is not in memory; None where it is in the database."""
        if not self._open:
            raise StoreError(f"{self.pool.where} is not open", hint="use `async with Scout.open(...)`")
        while caller.tenant not in self.tenants_in_database or self._judging:
            scope = caller.scope if caller.scope in self._existing else Scope(tenant=caller.tenant)
            missing = self.segments.missing(scope)
            if not missing:
                return self.segments.snapshot(scope)
            await self._load(missing[0])
        return None

    async def _load(self, scope: Scope) -> None:
        """Read the newest generation of a scope and show it; whoever asks meanwhile waits for the same reading."""
        if scope not in self._loading:
            task = self._loading[scope] = asyncio.create_task(self._reading(scope))
            task.add_done_callback(lambda _: self._loading.pop(scope, None))
        await asyncio.shield(self._loading[scope])

    async def _reading(self, scope: Scope) -> None:
        exact, where, whole = self._settings.exact_rows, self.pool.where, self._judging
        build = await self.pool.run(
            lambda db: reads.read_segment(db, scope, exact, where, whole=whole), tenant=scope.tenant, snapshot=True
        )
        if build is None:
            self._keep_in_database(scope.tenant)
        else:
            self.segments.put(await asyncio.to_thread(build))

    async def _catch_up(self) -> None:
        """Show what this process has just changed; it is committed, so a failure to read it back is no error."""
        try:
            await self._apply(await self.pool.run(lambda db: reads.generations(db, self._listener.since)))
        except StoreError:
            self._stale = True

    async def _apply(self, changes: Changes) -> None:
        """Load again what has a newer generation in the database."""
        self._existing |= changes.keys()
        for scope, (_, _, in_database) in changes.items():
            if not in_database:
                self.tenants_in_database.discard(scope.tenant)
            elif scope.tenant not in self.tenants_in_database:
                self._keep_in_database(scope.tenant)
        if changes:
            model_id = max(changes.values())[1]
            for scope in {**changes, **dict.fromkeys(self.segments.of_other_models(model_id))}:
                generation = changes[scope][0] if scope in changes else 0
                for _ in range(2):  # a reading that was under way may have begun before the change; a new one has not
                    if self.segments.behind(scope, generation, model_id):
                        await self._load(scope)
        self._stale = False

    @property
    def _judging(self) -> bool:
        """Whether a policy is in force: only a segment can count, score and suggest by what a caller may see of it."""
        return getattr(self._predicate, "policy", None) is not None

    def _keep_in_database(self, tenant: str) -> None:
        self.tenants_in_database.add(tenant)
        if self._judging:
            return
        for scope in [item for item in self.segments.loaded() if item.tenant == tenant]:
            self.segments.drop(scope)

    def _lost(self) -> None:
        self._stale = self._open  # before that, the schema may just not be there yet

    async def _tidy(self) -> None:
        """Forget what has been of no use for long: once an hour, on whichever replica asks first."""
        while True:
            with suppress(StoreError):
                if await self.lease("tidy", uuid4().hex, _TIDY_S):
                    await self.pool.run(lambda db: db.execute("SELECT forget_unused(%s)", (_UNUSED,)))
            await asyncio.sleep(_TIDY_S)

    async def _migrated(self, db: AsyncConnection) -> str:
        try:
            return await self.pool.bounded(migrate(db, self.pool.where), [db])
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise self.pool.failure(error) from error

    async def _take_out(self, scope: Scope, server: str | None) -> int:
        most = self._settings.resident_tools
        removed = await self.pool.run(lambda db: writes.take_out(db, scope, server, most), tenant=scope.tenant)
        await self._catch_up()
        return removed


async def _settle(db: AsyncConnection) -> None:
    await db.execute("SELECT settle()")
