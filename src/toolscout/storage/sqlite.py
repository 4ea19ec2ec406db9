"""The embedded store: one SQLite file in WAL mode holds the catalogue, segments in memory answer every read.

A publication is one transaction, so a reader, and a process killed at any moment, finds wholly the old or wholly the
new generation. It replaces the segment of its scope alone. Several processes may share a file: each notices a new
generation by SQLite's own change counter.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolscout.errors import DimensionError, StoreError, ToolNotFoundError, ToolscoutError
from toolscout.models import Caller, Candidates, Facets, Filter, Intent, Overview, Publication, Scope, Server, Tool
from toolscout.ports import Predicate
from toolscout.settings import Settings
from toolscout.storage import rows
from toolscout.storage.schema import migrate

if TYPE_CHECKING:
    from toolscout.models import FloatArray
    from toolscout.storage.index.segment import Segment
    from toolscout.storage.index.shelf import Shelf
    from toolscout.storage.index.snapshot import Snapshot

_Result = TypeVar("_Result")
_UNUSED_VECTORS_S = 7 * 86_400
_CHUNK = 500
_INLINE_ROWS = 20_000
"""Up to this size a search takes about a millisecond: less than handing it to a thread and back would add."""
_UNREADABLE = -2
_PUT_SERVER = """
    INSERT INTO servers VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET title = excluded.title, trusted = excluded.trusted
"""
_NEXT = "UPDATE catalogue SET generation = generation + 1"
_SHOW = "INSERT OR REPLACE INTO scopes SELECT ?, ?, generation FROM catalogue"
_SHOW_ALL = "UPDATE scopes SET generation = (SELECT generation FROM catalogue)"
_UNEMBEDDED = """
    SELECT tenant, key, owner, server, NULL, facets, definition FROM tools
    WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = ? AND v.text_hash = tools.text_hash)
"""


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
        self._shelf: Shelf | None = None
        self._reload: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the file, migrate it, and load what everyone of the local tenant sees."""
        from toolscout.storage.index.shelf import Shelf

        await self._run(self._open)
        self._shelf = Shelf(self._predicate, most_rows=self._settings.loaded_tools)
        self._seen_version = self._version()
        await self._load(Scope())

    async def close(self) -> None:
        """Close the file."""
        if self._reload:
            await asyncio.gather(self._reload, return_exceptions=True)
        await self._run(self._close)
        await asyncio.to_thread(self._worker.shutdown)

    async def overview(self, caller: Caller) -> Overview:
        """Return what the caller can see in sum."""
        snapshot = await self._current(caller)
        view = snapshot.view(caller)
        return Overview(
            total=view.count,
            tokens=view.tokens,
            categories=view.categories,
            generation=snapshot.generation,
            model_id=snapshot.model_id,
            stale=self._stale,
            servers=view.servers,
        )

    async def stamps(self, scope: Scope, server: str) -> Mapping[str, str]:
        """Return key -> stamp for a server's published tools."""
        query = "SELECT key, stamp FROM tools WHERE tenant = ? AND owner = ? AND server = ?"
        return dict(await self._run(lambda: self._db.execute(query, (*_whose(scope), server)).fetchall()))

    async def servers(self, scope: Scope) -> Sequence[Server]:
        """Return the servers of a scope."""
        query = "SELECT key, title, trusted FROM servers WHERE tenant = ? AND owner = ? ORDER BY key"
        found = await self._run(lambda: self._db.execute(query, _whose(scope)).fetchall())
        return [Server(key=key, title=title, trusted=bool(trusted)) for key, title, trusted in found]

    async def missing_vectors(self, model_id: str, text_hashes: Sequence[str]) -> set[str]:
        """Return those texts that have no vector of this model yet."""
        return await self._run(lambda: self._missing(model_id, text_hashes))

    async def add_vectors(self, model_id: str, text_hashes: Sequence[str], vectors: FloatArray) -> None:
        """Keep vectors, as half-precision numbers, under (model, text)."""
        await self._run(lambda: self._add_vectors(model_id, text_hashes, vectors))

    async def publish(self, publication: Publication) -> int:
        """Replace whole servers in one transaction and show the result."""
        generation = await self._run(lambda: self._publish(publication))
        await self._refresh()
        return generation

    async def remove_server(self, scope: Scope, server: str) -> int:
        """Take a server and its tools out."""
        return await self._take_out(scope, "tenant = ? AND owner = ? AND key = ?", (*_whose(scope), server))

    async def remove_user(self, tenant: str, user: str) -> int:
        """Take everything out that one user added."""
        scope = Scope(tenant=tenant, owner=user)
        return await self._take_out(scope, "tenant = ? AND owner = ?", _whose(scope))

    async def set_enabled(self, scope: Scope, key: str, enabled: bool) -> None:
        """Switch one tool on or off."""
        await self._run(lambda: self._switch(scope, key, enabled))
        await self._refresh()

    async def unembedded(self, model_id: str) -> Sequence[Tool]:
        """Return the published tools whose text has no vector of this model."""
        found = await self._run(lambda: self._db.execute(_UNEMBEDDED, (model_id,)).fetchall())
        return [rows.read_tool(rows.read_facets(*row[:6]), row[6]) for row in found]

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
        snapshot = await self._current(caller)
        found = {key: place for key in keys if (place := snapshot.find(caller, key)) is not None}
        return {key: rows.read_tool(home.facets[row], home.definitions[row]) for key, (home, row) in found.items()}

    # What follows runs on the store's own thread, except where a name says otherwise.

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

    def _missing(self, model_id: str, text_hashes: Sequence[str]) -> set[str]:
        wanted = [bytes.fromhex(item) for item in text_hashes]
        missing = set(wanted)
        for start in range(0, len(wanted), _CHUNK):
            part = wanted[start : start + _CHUNK]
            marks = ",".join("?" * len(part))
            query = f"SELECT text_hash FROM vectors WHERE model_id = ? AND text_hash IN ({marks})"  # noqa: S608 - marks only
            missing.difference_update(row[0] for row in self._db.execute(query, (model_id, *part)))
        return {item.hex() for item in missing}

    def _add_vectors(self, model_id: str, text_hashes: Sequence[str], vectors: FloatArray) -> None:
        halves = vectors.astype("<f2")
        now = time.time()
        same_model = "SELECT length(vector) FROM vectors WHERE model_id = ? LIMIT 1"
        found = (
            (model_id, bytes.fromhex(text_hash), vector.tobytes(), now)
            for text_hash, vector in zip(text_hashes, halves, strict=True)
        )
        with _transaction(self._db):
            known = self._db.execute(same_model, (model_id,)).fetchone()
            if known and known[0] != halves.shape[1] * halves.itemsize:
                raise DimensionError(
                    f"{self._where} holds vectors of {known[0] // halves.itemsize} numbers for {model_id}, "
                    f"the new ones have {halves.shape[1]}",
                    hint="two models share one name; give the new one another id and run `toolscout index` again",
                )
            self._db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?)", found)

    def _publish(self, publication: Publication) -> int:
        from toolscout.storage.index.words import pack

        whose, db = _whose(publication.scope), self._db
        found = [
            (
                *whose,
                entry.tool.key,
                entry.tool.server,
                entry.stamp,
                bytes.fromhex(entry.text_hash),
                pack(entry.terms),
                rows.write_facets(entry),
                rows.write_definition(entry.tool),
            )
            for entry in publication.entries
        ]
        keep = {*publication.kept, *(entry.tool.key for entry in publication.entries)}
        with _transaction(db):
            for server in publication.servers:
                db.execute(_PUT_SERVER, (*whose, server.key, server.title, server.trusted))
                query = "SELECT key FROM tools WHERE tenant = ? AND owner = ? AND server = ?"
                present = db.execute(query, (*whose, server.key)).fetchall()
                gone = [(*whose, key) for (key,) in present if key not in keep]
                db.executemany("DELETE FROM tools WHERE tenant = ? AND owner = ? AND key = ?", gone)
            db.executemany("INSERT OR REPLACE INTO tools VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", found)
            db.execute(
                "DELETE FROM vectors WHERE added_at < ? AND text_hash NOT IN (SELECT text_hash FROM tools)",
                (time.time() - _UNUSED_VECTORS_S,),
            )
            db.execute(_NEXT)
            db.execute("UPDATE catalogue SET model_id = ?", (publication.model_id,))
            db.execute(_SHOW, whose)
            if publication.everywhere:
                db.execute(_SHOW_ALL)
            return int(db.execute("SELECT generation FROM catalogue").fetchone()[0])

    async def _take_out(self, scope: Scope, where: str, values: Sequence[str]) -> int:
        def take_out() -> int:
            with _transaction(self._db):
                count = "SELECT count(*) FROM tools WHERE tenant = ? AND owner = ?"
                before = self._db.execute(count, _whose(scope)).fetchone()[0]
                self._db.execute(f"DELETE FROM servers WHERE {where}", values)  # noqa: S608 - our own two conditions
                self._db.execute(_NEXT)
                self._db.execute(_SHOW, _whose(scope))
                return int(before - self._db.execute(count, _whose(scope)).fetchone()[0])

        removed = await self._run(take_out)
        await self._refresh()
        return removed

    def _switch(self, scope: Scope, key: str, enabled: bool) -> None:
        whose = _whose(scope)
        known = "SELECT 1 FROM tools WHERE tenant = ? AND owner = ? AND key = ?"
        with _transaction(self._db):
            if not self._db.execute(known, (*whose, key)).fetchone():
                raise ToolNotFoundError(f"no tool has the key {key!r}", hint="`toolscout list` shows the keys")
            self._db.execute("INSERT OR REPLACE INTO switches VALUES (?, ?, ?, ?)", (*whose, key, enabled))
            self._db.execute(_NEXT)
            self._db.execute(_SHOW, whose)

    @property
    def _loaded(self) -> Shelf:
        if self._shelf is None:
            raise StoreError(f"{self._where} is not open", hint="use `async with Scout.open(...)`")
        return self._shelf

    async def _load(self, scope: Scope) -> None:
        """Read the newest generation of a scope, and show it."""

        def load() -> Segment:
            from toolscout.storage.load import load_segment

            return load_segment(self._db, scope, self._settings, self._where)

        self._loaded.put(await self._run(load))

    async def _refresh(self) -> None:
        """Load again what has a newer generation in the file."""
        version = self._version()
        query = "SELECT s.tenant, s.owner, s.generation, c.model_id FROM scopes s, catalogue c"
        found = await self._run(lambda: self._db.execute(query).fetchall())
        newest = {Scope(tenant=row[0], owner=row[1] or None): (row[2], row[3]) for row in found}
        for scope, loaded in self._loaded.loaded().items():
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
        shelf = self._loaded
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

    async def _run(self, work: Callable[[], _Result]) -> _Result:
        def guarded() -> _Result:
            try:
                return work()
            except sqlite3.Error as error:
                raise StoreError(f"{self._where}: {error}", hint=_hint(error)) from error
            except OSError as error:
                raise StoreError(f"{self._where}: {error}", hint="check that the folder can be written") from error

        return await asyncio.get_running_loop().run_in_executor(self._worker, guarded)


class _transaction:  # noqa: N801 - reads as a keyword
    """All or nothing; `BEGIN IMMEDIATE` waits for another writer instead of failing half-way."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:  # after a disk error SQLite has rolled back already
                self._connection.execute("ROLLBACK")


def _whose(scope: Scope) -> tuple[str, str]:
    """Write a scope as its two columns; everyone's has an empty owner."""
    return scope.tenant, scope.owner or ""


def _hint(error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text:
        return "another process is writing to the file; try again, or raise TOOLSCOUT_STORE_TIMEOUT_S"
    if "full" in text:
        return "free some disk space; the last published generation is still served"
    if "not a database" in text or "malformed" in text:
        return "the file is damaged or no catalogue: move it away and run `toolscout index` again"
    return "run `toolscout doctor`"
