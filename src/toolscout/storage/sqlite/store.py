"""The catalogue in one SQLite file in WAL mode. Segments in memory answer every search.

A publication is one transaction. A reader, and a process killed at any moment, finds either the old generation or the
new one, never a mixture. A publication replaces the segment of its scope alone. Several processes may share a file:
each notices a new generation by SQLite's change counter, and another file in the place of its own by its number.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
    Retention,
    Scope,
    Server,
    Tool,
)
from toolscout.ports import AccessFilter
from toolscout.settings import Settings
from toolscout.storage.sqlite import reads, writes
from toolscout.storage.sqlite.damage import REPAIR
from toolscout.storage.sqlite.schema import migrate

if TYPE_CHECKING:
    from toolscout.models import FloatArray
    from toolscout.storage.index.segment_cache import SegmentCache
    from toolscout.storage.index.snapshot import Snapshot

_Result = TypeVar("_Result")
_FileId = tuple[int, int]
_UNREADABLE = -2
_NONE_YET: _FileId = (-1, -1)
_CLEAN_UP_S = 3_600.0
_CHECK_RIGHTS = "check the owner and mode of {} and of its folder"


class SqliteStore:
    """A Store in one SQLite file, or in memory when the path is None."""

    def __init__(self, path: Path | None, access: AccessFilter, settings: Settings) -> None:
        self._path = path
        self._where = str(path) if path else "memory:"
        self._access = access
        self._settings = settings
        self._worker = ThreadPoolExecutor(1, "toolscout-store")
        self._connection: sqlite3.Connection | None = None
        self._watch: sqlite3.Connection | None = None
        self._opened_file: _FileId | None = None
        self._logs: dict[Path, _FileId] = {}
        self._loaded_file: _FileId | None = None
        self._seen_version = -1
        self._clean_up_at = 0.0
        self._stale = False
        self._segments: SegmentCache | None = None
        self._reload: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the file, migrate it, and load the shared scope of the local tenant."""
        from toolscout.storage.index.segment_cache import SegmentCache

        await self._run(self._open)
        self._segments = SegmentCache(self._access, max_rows=self._settings.loaded_tools)
        self._seen_version = self._version()
        self._loaded_file = self._opened_file
        await self._load(Scope())

    async def close(self) -> None:
        """Close the file."""
        if self._reload:
            await asyncio.gather(self._reload, return_exceptions=True)
        self._opened_file = None  # it is closed, whether or not it is still there
        await self._run(self._close)
        await asyncio.to_thread(self._worker.shutdown)

    async def ping(self) -> None:
        """Read one value from the file."""
        await self._run(lambda: self.connection.execute("SELECT generation FROM catalogue").fetchone())

    async def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        """Take or renew a lease. Processes that share the file share its leases."""
        return await self._run(lambda: writes.lease(self.connection, name, holder, ttl_s))

    async def release(self, name: str, holder: str) -> None:
        """Release a lease before it expires."""
        await self._run(lambda: writes.release(self.connection, name, holder))

    async def scopes(self) -> Sequence[Scope]:
        """Return every scope, sorted by name."""
        return list(await self._run(lambda: reads.generations(self.connection)))

    async def record(self, kind: str, name: str) -> Record | None:
        """Return one record by its name."""
        return next(iter(await self._run(lambda: reads.records(self.connection, kind, None, name, prefix=False))), None)

    async def records(self, kind: str, scope: Scope | None = None, prefix: str = "") -> Sequence[Record]:
        """Return the records of a kind whose names have the prefix."""
        return await self._run(lambda: reads.records(self.connection, kind, scope, prefix, prefix=True))

    async def put_records(self, records: Sequence[Record], *, replace: bool = True) -> None:
        """Store records."""
        await self._run(lambda: writes.put_records(self.connection, records, replace=replace))

    async def remove_record(self, kind: str, scope: Scope, name: str) -> None:
        """Remove one record."""
        await self._run(lambda: writes.remove_record(self.connection, kind, scope, name))

    async def overview(self, caller: Caller) -> Overview:
        """Return the totals of what the caller may see."""
        snapshot = await self._current(caller)
        return snapshot.overview(caller, stale=self._stale or _file_id(self._path) != self._opened_file)

    async def stamps(self, scope: Scope, server: str) -> Mapping[str, str]:
        """Return the stamp of each published tool of a server, by key."""
        return await self._run(lambda: reads.stamps(self.connection, scope, server))

    async def servers(self, scope: Scope) -> Sequence[Server]:
        """Return the servers of a scope."""
        return await self._run(lambda: reads.servers(self.connection, scope))

    async def switches(self, scope: Scope) -> Mapping[str, bool]:
        """Return which tools were enabled or disabled by an operator, by key."""
        return await self._run(lambda: reads.switches(self.connection, scope))

    async def stored_tools(self, scope: Scope) -> Sequence[Tool]:
        """Return all published tools of a scope, disabled ones included."""
        return await self._run(lambda: reads.stored_tools(self.connection, scope))

    async def vectors(self, model_id: str, text_hashes: Sequence[str]) -> Mapping[str, FloatArray]:
        """Return the stored vectors of these texts, by text hash."""
        return await self._run(lambda: reads.vectors(self.connection, model_id, text_hashes))

    async def missing_vectors(self, model_id: str, text_hashes: Sequence[str]) -> set[str]:
        """Return the hashes of the texts that have no vector of this model yet."""
        return await self._run(lambda: reads.missing_vectors(self.connection, model_id, text_hashes))

    async def add_vectors(self, model_id: str, text_hashes: Sequence[str], vectors: FloatArray) -> None:
        """Store vectors in half precision, by model and text hash."""
        await self._run(lambda: writes.add_vectors(self.connection, model_id, text_hashes, vectors, self._where))

    async def clean_up(self, retention: Retention) -> None:
        """Delete the vectors and pins of tools that are long gone."""
        await self._run(lambda: writes.clean_up(self.connection, retention))

    async def publish(self, publication: Publication) -> int:
        """Replace whole servers in one transaction, and load the result. Once an hour, clean up after that."""
        generation = await self._change(lambda: writes.publish(self.connection, publication))
        if time.monotonic() >= self._clean_up_at:
            self._clean_up_at = time.monotonic() + _CLEAN_UP_S
            with suppress(StoreError):
                await self.clean_up(Retention(pins_s=self._settings.pins_kept_days * 86_400))
        return generation

    async def remove_server(self, scope: Scope, server: str) -> int:
        """Remove a server and its tools."""
        return await self._change(lambda: writes.remove(self.connection, scope, server))

    async def remove_user(self, tenant: str, user: str) -> int:
        """Remove everything that one user added."""
        return await self._change(lambda: writes.remove(self.connection, Scope(tenant=tenant, owner=user)))

    async def set_enabled(self, scope: Scope, keys: Sequence[str], enabled: bool) -> None:
        """Enable or disable tools in one transaction, and load the result once."""
        await self._change(lambda: writes.set_enabled(self.connection, scope, keys, enabled))

    async def unembedded(self, model_id: str) -> Sequence[Tool]:
        """Return the published tools whose text has no vector of this model."""
        return await self._run(lambda: reads.unembedded(self.connection, model_id))

    async def candidates(
        self, caller: Caller, narrow: Filter, intents: Sequence[Intent], limit: int, model_id: str
    ) -> Candidates:
        """Return the union of the best by vector and by words, filtered inside the search."""
        snapshot = await self._current(caller)
        return await snapshot.run(lambda self: self.candidates(caller, narrow, intents, limit, model_id))

    async def vocabulary(self, caller: Caller) -> Sequence[str]:
        """Return the words in the names of the tools that the caller may see."""
        snapshot = await self._current(caller)
        return await asyncio.to_thread(snapshot.vocabulary, caller)

    async def facets(self, caller: Caller, narrow: Filter) -> Sequence[Facets]:
        """Return the tools that the caller may see and that fit the filter, sorted by key."""
        return (await self._current(caller)).facets(caller, narrow)

    async def similar(self, caller: Caller, key: str, limit: int) -> Sequence[tuple[Facets, float]]:
        """Return the visible tools nearest to a tool by vector, best first."""
        snapshot = await self._current(caller)
        return await asyncio.to_thread(snapshot.similar, caller, key, limit)

    async def tools(self, caller: Caller, keys: Sequence[str]) -> Mapping[str, Tool]:
        """Return the full definitions of those keys that the caller may see."""
        return (await self._current(caller)).tools(caller, keys)

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection that the store's thread works with."""
        if self._connection is None:
            raise StoreError.not_open(self._where)
        return self._connection

    def _open(self) -> None:
        if self._path:
            _create_private(self._path)
        file = _file_id(self._path)
        self._connection = self._connect()
        migrate(self._connection, self._where)
        if self._path:
            self._watch = self._connect()
            logs = [self._path.with_name(self._path.name + suffix) for suffix in ("-wal", "-shm")]
            self._logs = {log: log_id for log in logs if (log_id := _file_id(log))}
        self._opened_file = file

    def _follow_file(self) -> None:
        """Open the file that took the place of the open one, as a restored copy does. Fail while there is none.

        The log of the old file is written back to it and removed: SQLite would read the new file with it.
        """
        file = _file_id(self._path)
        if self._opened_file in (None, file):
            return
        if file is None:
            raise self._failure(" is gone", "put the file back, or restart to begin with an empty one")
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint")
        self._close()
        self._opened_file = _NONE_YET  # whatever cannot be opened now is tried again
        for log, log_id in self._logs.items():
            if _file_id(log) == log_id:
                log.unlink()
        self._open()

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
            raise StoreError.not_open(self._where)
        return self._segments

    async def _load(self, scope: Scope) -> None:
        """Load the newest generation of a scope, or what of it has changed."""
        exact_rows, loaded = self._settings.exact_rows, self.segments.get(scope)
        self.segments.put(
            await self._run(lambda: reads.load_segment(self.connection, scope, exact_rows, self._where, loaded))
        )

    async def _refresh(self) -> None:
        """Reload the scopes in memory that have a newer generation in the file."""
        version = self._version()
        newest = await self._run(lambda: reads.generations(self.connection))
        for scope, current in self.segments.loaded().items():
            if newest.get(scope, current) != current:
                await self._load(scope)
        self._seen_version = version
        self._stale = False

    async def _catch_up(self) -> None:
        """Load what another process published. When that fails, go on with what is loaded and mark it stale."""
        try:
            await self._refresh()
        except ToolscoutError:
            self._stale = True

    async def _current(self, caller: Caller) -> Snapshot:
        """Return the newest loaded generation. One that another process published is loaded in the background."""
        segments = self.segments
        if _file_id(self._path) not in (None, self._opened_file):
            await self._run(self._follow_file)
        if self._loaded_file != self._opened_file:
            self._loaded_file = self._opened_file
            for scope in segments.loaded():
                segments.drop(scope)
        if self._version() != self._seen_version and (self._reload is None or self._reload.done()):
            self._reload = asyncio.create_task(self._catch_up())
        while missing := segments.missing(caller.scope):
            await self._load(missing[0])
        return segments.snapshot(caller.scope)

    def _version(self) -> int:
        """Read SQLite's change counter. In WAL mode that takes microseconds and never waits: no thread is needed."""
        watch = self._watch  # the store's thread may close it and open another
        try:
            return int(watch.execute("PRAGMA data_version").fetchone()[0]) if watch else -1
        except sqlite3.Error:
            return _UNREADABLE

    async def _change(self, work: Callable[[], _Result]) -> _Result:
        """Change the file, and load the result before returning."""
        result = await self._run(work)
        await self._refresh()
        return result

    async def _run(self, work: Callable[[], _Result]) -> _Result:
        """Run work on the file in the store's single thread."""

        def guarded() -> _Result:
            try:
                self._follow_file()
                return work()
            except sqlite3.Error as error:
                raise self._failure(f": {error}", _hint(error, self._where)) from error
            except OSError as error:
                raise self._failure(f": {error.strerror}", _CHECK_RIGHTS.format(self._where)) from error

        return await asyncio.get_running_loop().run_in_executor(self._worker, guarded)

    def _failure(self, what: str, hint: str) -> StoreError:
        return StoreError(self._where + what, hint=hint, where=self._where)


def _file_id(path: Path | None) -> _FileId | None:
    """Return what tells one file from another that takes its place under the same name. None if there is none."""
    try:
        status = path.stat() if path else None
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status else None


def _hint(error: sqlite3.Error, where: str) -> str:
    text = str(error)
    if "locked" in text:
        return "another process is writing to the file; try again, or raise TOOLSCOUT_STORE_TIMEOUT_S"
    if "full" in text:
        return "free some disk space; the last published generation is still served"
    if "not a database" in text or "malformed" in text:
        return f"the file is damaged or is not a catalogue: {REPAIR}"
    if "open" in text or "readonly" in text or "denied" in text:
        return _CHECK_RIGHTS.format(where)
    return f"check the disk that {where} is on"


def _create_private(path: Path) -> None:
    """Create the file and its folder for their owner alone. What exists keeps its rights: they are the operator's."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
