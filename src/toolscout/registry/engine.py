"""The search behind a registry: one Scout in memory, on a thread of its own, for any number of threads and loops.

Nothing that an author wrote runs on that thread: handlers and providers stay with whoever calls them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from toolscout.models import Answer, Caller, Dropped, IndexReport
from toolscout.ports import Embedder
from toolscout.registry.definitions import SERVER
from toolscout.registry.thread import LoopThread
from toolscout.scout import Scout
from toolscout.settings import Settings
from toolscout.sources.rows import RowsSource

Row = Mapping[str, Any]

_SCOPES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Everybody's tools at one moment; a later moment has a higher revision."""

    revision: int
    rows: Sequence[Row]


Latest = Callable[[], Catalogue]


@dataclass(slots=True)
class _Published:
    """The tools of a request in the catalogue; they stay while somebody searches them."""

    done: asyncio.Task[IndexReport]
    users: int = 0


@dataclass(slots=True)
class _State:
    opening: asyncio.Task[Scout] | None = None
    indexing: asyncio.Lock = field(default_factory=asyncio.Lock)
    publishing: asyncio.Lock = field(default_factory=asyncio.Lock)
    revision: int = -1
    published: OrderedDict[str, _Published] = field(default_factory=OrderedDict)


class Engine:
    """Indexes what it is given and searches it; nothing heavy happens before it is first asked."""

    def __init__(self, settings: Settings, embedder: Embedder | None, scopes: int = _SCOPES) -> None:
        """Take what the scout is opened with, and how many requests' tools are kept for their next search."""
        self._settings = settings
        self._embedder = embedder
        self._scopes = scopes
        self._thread = LoopThread(_State, _end)

    async def index(self, latest: Latest, revision: int) -> tuple[Dropped, ...]:
        """Make everybody's tools findable and load the model; return what could not be indexed."""

        async def indexed(state: _State) -> tuple[Dropped, ...]:
            scout = await self._opened(state)
            dropped = await _index(state, scout, latest, revision)
            await scout.warm()
            return dropped

        return await self._thread.ask(indexed)

    async def search(
        self, query: str, *, latest: Latest, revision: int, own: Sequence[Row], limit: int, ranker: str
    ) -> tuple[Answer, tuple[Dropped, ...]]:
        """Search everybody's tools of that revision, or a later one, and a request's `own`, which hide equal names."""

        async def found(state: _State) -> tuple[Answer, tuple[Dropped, ...]]:
            scout = await self._opened(state)
            dropped = await _index(state, scout, latest, revision)
            async with self._publish(state, scout, own) as (caller, bad):
                answer = await scout.search_tools(query, top_k=limit, ranker=ranker, detail="full", caller=caller)
                return answer, (*dropped, *bad)

        return await self._thread.ask(found)

    def close(self, *, wait: bool = True) -> None:
        """Free what the engine holds; asked again, it begins anew."""
        self._thread.close(wait=wait)

    async def _opened(self, state: _State) -> Scout:
        if state.opening is None or (state.opening.done() and state.opening.exception()):
            scout = Scout.open(store="memory:", embedder=self._embedder, settings=self._settings)
            state.opening = asyncio.ensure_future(scout.__aenter__())
        return await asyncio.shield(state.opening)

    @asynccontextmanager
    async def _publish(
        self, state: _State, scout: Scout, rows: Sequence[Row]
    ) -> AsyncIterator[tuple[Caller, tuple[Dropped, ...]]]:
        """Publish a request's tools under their own hash: equal tools are published once, whoever asks for them."""
        if not rows:
            yield Caller(), ()
            return
        owner = _digest(rows)
        caller = Caller(user=owner)
        published = state.published.get(owner)
        if published is None:
            published = _Published(asyncio.ensure_future(_index_own(state, scout, rows, caller)))
            state.published[owner] = published
        state.published.move_to_end(owner)
        published.users += 1
        try:
            report = await asyncio.shield(published.done)
            yield caller, report.dropped
        finally:
            published.users -= 1
            if published.done.done() and (published.done.cancelled() or published.done.exception()):
                state.published.pop(owner, None)
            await self._evict(state, scout)

    async def _evict(self, state: _State, scout: Scout) -> None:
        """Take out the tools of the requests that were longest ago, unless somebody searches them now."""
        over = max(len(state.published) - self._scopes, 0)
        for owner in [name for name, item in state.published.items() if not item.users][:over]:
            state.published.pop(owner, None)
            async with state.publishing:
                if owner not in state.published:
                    await scout.remove_server(SERVER.key, caller=Caller(user=owner))


async def _index(state: _State, scout: Scout, latest: Latest, revision: int) -> tuple[Dropped, ...]:
    """Index once, however many ask at once: who comes second finds it done, for the latest of all changes."""
    async with state.indexing:
        if state.revision >= revision:
            return ()
        catalogue = latest()
        report = await scout.index([RowsSource(server=SERVER, rows=catalogue.rows)])
        state.revision = catalogue.revision
        return report.dropped


async def _index_own(state: _State, scout: Scout, rows: Sequence[Row], caller: Caller) -> IndexReport:
    async with state.publishing:
        return await scout.index([RowsSource(server=SERVER, rows=rows)], caller=caller)


async def _end(state: _State) -> None:
    if state.opening is not None and not state.opening.cancelled() and not state.opening.exception():
        await state.opening.result().__aexit__(None, None, None)


def _digest(rows: Sequence[Row]) -> str:
    text = json.dumps(list(rows), sort_keys=True)
    return "request-" + hashlib.sha256(text.encode()).hexdigest()[:32]
