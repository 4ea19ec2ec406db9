"""One SQLite file in WAL mode holds the catalogue, segments in memory answer every search.

A publication is one transaction, so a reader, and a process killed at any moment, finds wholly the old or wholly the
new generation. It replaces the segment of its scope alone. Several processes may share a file: each notices a new
generation by SQLite's own change counter.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolscout.errors import StoreError, ToolscoutError
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
from toolscout.storage.sqlite import reads, writes
from toolscout.storage.sqlite.schema import migrate

if TYPE_CHECKING:
    from toolscout.models import FloatArray
    from toolscout.storage.index.segment import Segment
    from toolscout.storage.index.segment_cache import SegmentCache
    from toolscout.storage.index.snapshot import Snapshot

_Result = TypeVar("_Result")
_INLINE_ROWS = 20_000
"""Up to this size a search takes about a millisecond: less than handing it to a thread and back would add."""
_UNREADABLE = -2
_OWNER = "check the owner and mode of {} and of its folder"


class SqliteStore:
    """A Store in one SQLite file, or in memory when the path is None."""

    def __init__(self, path: Path | None, predicate: Predicate, settings: Settings) -> None:
        """Remember where the file is; `open()` does the work."""
        self._path = path
        self._where = str(path) if path else "memory:"
        self._predicate = predicate
        self._settings = settings
        self._worker = ThreadPoolExecutor(1, "toolscout-store")
        self._connection: sqlite3.Connection | None = None
        self._watch: sqlite3.Connection | None = None
        self._seen_version = -1
        self._stale = False
        self._segments: SegmentCache | None = None
        self._reload: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the file, migrate it, and load what everyone of the local tenant sees."""
        from toolscout.storage.index.segment_cache import SegmentCache

        await self._run(self._open)
        self._segments = SegmentCache(self._predicate, most_rows=self._settings.loaded_tools)
        self._seen_version = self._version()
        await self._load(Scope())

    async def close(self) -> None:
        """Close the file."""
        if self._reload:
            await asyncio.gather(self._reload, return_exceptions=True)
        await self._run(self._close)
        await asyncio.to_thread(self._worker.shutdown)

    async def ping(self) -> None:
        """Read one value from the file."""
        await self._run(lambda: self._db.execute("SELECT generation FROM catalogue").fetchone())

    async def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        """Take or renew a lease: processes that share the file share its leases."""
        return await self._run(lambda: writes.lease(self._db, name, holder, ttl_s))

    async def release(self, name: str, holder: str) -> None:
        """Give a lease back before its time."""
        await self._run(lambda: writes.release(self._db, name, holder))

    async def scopes(self) -> Sequence[Scope]:
        """Return every scope, in the order of their names."""
        return list(await self._run(lambda: reads.generations(self._db)))

    async def record(self, kind: str, name: str) -> Record | None:
        """Return one record by its name."""
        return next(iter(await self._run(lambda: reads.records(self._db, kind, None, name, prefix=False))), None)

    async def records(self, kind: str, scope: Scope | None = None, prefix: str = "") -> Sequence[Record]:
        """Return the records of a kind whose names begin so."""
        return await self._run(lambda: reads.records(self._db, kind, scope, prefix, prefix=True))

    async def put_records(self, records: Sequence[Record], *, replace: bool = True) -> None:
        """Keep records."""
        await self._run(lambda: writes.put_records(self._db, records, replace=replace))

    async def overview(self, caller: Caller) -> Overview:
        """Return what the caller can see in sum."""
        return (await self._current(caller)).overview(caller, stale=self._stale)

    async def stamps(self, scope: Scope, server: str) -> Mapping[str, str]:
        """Return key -> stamp for a server's published tools."""
        return await self._run(lambda: reads.stamps(self._db, scope, server))

    async def servers(self, scope: Scope) -> Sequence[Server]:
        """Return the servers of a scope."""
        return await self._run(lambda: reads.servers(self._db, scope))

    async def switches(self, scope: Scope) -> Mapping[str, bool]:
        """Return what was switched by hand."""
        return await self._run(lambda: reads.switches(self._db, scope))

    async def stored_tools(self, scope: Scope) -> Sequence[Tool]:
        """Return all published tools of a scope, switched off or not."""
        return await self._run(lambda: reads.stored_tools(self._db, scope))

    async def vectors(self, model_id: str, text_hashes: Sequence[str]) -> Mapping[str, FloatArray]:
        """Return the vectors that there are, by their texts."""
        return await self._run(lambda: reads.vectors(self._db, model_id, text_hashes))

    async def missing_vectors(self, model_id: str, text_hashes: Sequence[str]) -> set[str]:
        """Return those texts that have no vector of this model yet."""
        return await self._run(lambda: reads.missing_vectors(self._db, model_id, text_hashes))

    async def add_vectors(self, model_id: str, text_hashes: Sequence[str], vectors: FloatArray) -> None:
        """Keep vectors, as half-precision numbers, under (model, text)."""
        await self._run(lambda: writes.add_vectors(self._db, model_id, text_hashes, vectors, self._where))

    async def publish(self, publication: Publication) -> int:
        """Replace whole servers in one transaction and show the result."""
        return await self._change(lambda: writes.publish(self._db, publication))

    async def remove_server(self, scope: Scope, server: str) -> int:
        """Take a server and its tools out."""
        return await self._change(lambda: writes.take_out(self._db, scope, server))

    async def remove_user(self, tenant: str, user: str) -> int:
        """Take everything out that one user added."""
        return await self._change(lambda: writes.take_out(self._db, Scope(tenant=tenant, owner=user)))

    async def set_enabled(self, scope: Scope, key: str, enabled: bool) -> None:
        """Switch one tool on or off."""
        await self._change(lambda: writes.switch(self._db, scope, key, enabled))

    async def unembedded(self, model_id: str) -> Sequence[Tool]:
        """Return the published tools whose text has no vector of this model."""
        return await self._run(lambda: reads.unembedded(self._db, model_id))

    async def candidates(
        self, caller: Caller, narrow: Filter, intents: Sequence[Intent], limit: int, model_id: str
    ) -> Candidates:
        """Return the union of the best by vector and by words, filtered inside the search."""
        snapshot = await self._current(caller)
        if snapshot.model_id != model_id:
            intents = [Intent(text=intent.text, terms=intent.terms) for intent in intents]
        if len(snapshot) <= _INLINE_ROWS:
            return snapshot.candidates(caller, narrow, intents, limit)
        return await asyncio.to_thread(snapshot.candidates, caller, narrow, intents, limit)

    async def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words of the names that the caller may see."""
        snapshot = await self._current(caller)
        return await asyncio.to_thread(snapshot.vocabulary, caller)

    async def facets(self, caller: Caller, narrow: Filter) -> Sequence[Facets]:
        """Return what the caller may see, in the order of keys."""
        return (await self._current(caller)).facets(caller, narrow)

    async def similar(self, caller: Caller, key: str, limit: int) -> Sequence[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first."""
        snapshot = await self._current(caller)
        return await asyncio.to_thread(snapshot.similar, caller, key, limit)

    async def tools(self, caller: Caller, keys: Sequence[str]) -> Mapping[str, Tool]:
        """Return the full definitions of those keys that the caller may see."""
        return (await self._current(caller)).tools(caller, keys)

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError(f"{self._where} is not open", hint="use `async with Scout.open(...)`")
        return self._connection

    def _open(self) -> None:
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = self._connect()
        migrate(self._connection, self._where)
        if self._path:
            self._watch = self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path or ":memory:",
            timeout=self._settings.store_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )
        if self._path:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    def _close(self) -> None:
        for connection in (self._watch, self._connection):
            if connection is not None:
                connection.close()
        self._connection = self._watch = None

    @property
    def segments(self) -> SegmentCache:
        """The segments in memory."""
        if self._segments is None:
            raise StoreError(f"{self._where} is not open", hint="use `async with Scout.open(...)`")
        return self._segments

    async def _load(self, scope: Scope) -> None:
        """Read the newest generation of a scope, and show it."""

        def load() -> Segment:
            return reads.load_segment(self._db, scope, self._settings.exact_rows, self._where)

        self.segments.put(await self._run(load))

    async def _refresh(self) -> None:
        """Load again what has a newer generation in the file."""
        version = self._version()
        newest = await self._run(lambda: reads.generations(self._db))
        for scope, loaded in self.segments.loaded().items():
            if newest.get(scope, loaded) != loaded:
                await self._load(scope)
        self._seen_version = version
        self._stale = False

    async def _catch_up(self) -> None:
        """Load what another process published; when that fails, what was loaded last is served, marked stale."""
        try:
            await self._refresh()
        except ToolscoutError:
            self._stale = True

    async def _current(self, caller: Caller) -> Snapshot:
        """Return the newest generation at hand; one that another process published is loaded in the background."""
        shelf = self.segments
        if self._version() != self._seen_version and (self._reload is None or self._reload.done()):
            self._reload = asyncio.create_task(self._catch_up())
        while missing := shelf.missing(caller.scope):
            await self._load(missing[0])
        return shelf.snapshot(caller.scope)

    def _version(self) -> int:
        """Read SQLite's change counter, in microseconds; it is safe on the event loop, as WAL readers never wait."""
        try:
            return int(self._watch.execute("PRAGMA data_version").fetchone()[0]) if self._watch else -1
        except sqlite3.Error:
            return _UNREADABLE

    async def _change(self, work: Callable[[], _Result]) -> _Result:
        """Change the file, and show the result before anyone is told that it is done."""
        result = await self._run(work)
        await self._refresh()
        return result

    async def _run(self, work: Callable[[], _Result]) -> _Result:
        """Work on the file, on the store's own thread: one thing at a time."""

        def guarded() -> _Result:
            try:
                return work()
            except sqlite3.Error as error:
                raise StoreError(f"{self._where}: {error}", hint=_hint(error, self._where)) from error
            except OSError as error:
                raise StoreError(f"{self._where}: {error}", hint=_OWNER.format(self._where)) from error

        return await asyncio.get_running_loop().run_in_executor(self._worker, guarded)


def _hint(error: sqlite3.Error, where: str) -> str:
    text = str(error)
    if "locked" in text:
        return "another process is writing to the file; try again, or raise TOOLSCOUT_STORE_TIMEOUT_S"
    if "full" in text:
        return "free some disk space; the last published generation is still served"
    if "not a database" in text or "malformed" in text:
        return "the file is damaged or no catalogue: move it away and run `toolscout index` again"
    if "open" in text or "readonly" in text or "denied" in text:
        return _OWNER.format(where)
    return f"check the disk that {where} is on"
