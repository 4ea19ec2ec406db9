"""The search engine of a registry: one in-memory Scout on its own thread, for any number of threads and loops.

No user code runs on that thread. Handlers and providers run in the caller's thread.
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
from toolscout.registry.loop_thread import LoopThread
from toolscout.scout import Scout
from toolscout.settings import Settings
from toolscout.sources.rows import RowsSource

Row = Mapping[str, Any]

_MAX_REQUESTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTools:
    """The tools of all requests at one moment. The revision grows with every change."""

    revision: int
    rows: Sequence[Row]


Latest = Callable[[], SharedTools]


@dataclass(slots=True)
class _RequestTools:
    """The indexed tools of one request. They are not evicted while a search uses them."""

    indexed: asyncio.Task[IndexReport]
    searches: int = 0


@dataclass(slots=True)
class _EngineState:
    opening: asyncio.Task[Scout] | None = None
    indexing: asyncio.Lock = field(default_factory=asyncio.Lock)
    publishing: asyncio.Lock = field(default_factory=asyncio.Lock)
    revision: int = -1
    requests: OrderedDict[str, _RequestTools] = field(default_factory=OrderedDict)


class SearchEngine:
    """Indexes and searches tools. The first use starts the thread and loads the model."""

    def __init__(self, settings: Settings, embedder: Embedder | None, max_requests: int = _MAX_REQUESTS) -> None:
        """Take the options of the scout, and the number of requests whose tools stay indexed."""
        self._settings = settings
        self._embedder = embedder
        self._max_requests = max_requests
        self._thread = LoopThread(_EngineState, _close_scout)

    async def index(self, latest: Latest, revision: int) -> tuple[Dropped, ...]:
        """Index the shared tools and load the model. Return the tools that could not be indexed."""

        async def index(state: _EngineState) -> tuple[Dropped, ...]:
            scout = await self._scout(state)
            dropped = await _index(state, scout, latest, revision)
            await scout.warm()
            return dropped

        return await self._thread.run(index)

    async def search(
        self, query: str, *, latest: Latest, revision: int, request_rows: Sequence[Row], limit: int, ranker: str
    ) -> tuple[Answer, tuple[Dropped, ...]]:
        """Search the shared tools, of that revision or later, and the request's, which have precedence."""

        async def search(state: _EngineState) -> tuple[Answer, tuple[Dropped, ...]]:
            scout = await self._scout(state)
            dropped = await _index(state, scout, latest, revision)
            async with self._request_tools(state, scout, request_rows) as (caller, request_dropped):
                answer = await scout.search_tools(query, top_k=limit, ranker=ranker, detail="full", caller=caller)
                return answer, (*dropped, *request_dropped)

        return await self._thread.run(search)

    def close(self, *, wait: bool = True) -> None:
        """Close the scout and end the thread. A later use starts both again."""
        self._thread.close(wait=wait)

    async def indexed_requests(self) -> list[str]:
        """Return the digests of the requests whose tools are indexed, the least recently searched first."""

        async def digests(state: _EngineState) -> list[str]:
            return list(state.requests)

        return await self._thread.run(digests)

    async def _scout(self, state: _EngineState) -> Scout:
        if state.opening is None or (state.opening.done() and state.opening.exception()):
            scout = Scout.open(store="memory:", embedder=self._embedder, settings=self._settings)
            state.opening = asyncio.ensure_future(scout.__aenter__())
        return await asyncio.shield(state.opening)

    @asynccontextmanager
    async def _request_tools(
        self, state: _EngineState, scout: Scout, rows: Sequence[Row]
    ) -> AsyncIterator[tuple[Caller, tuple[Dropped, ...]]]:
        """Index a request's tools for a user whose name is their digest, so that equal tools are indexed once."""
        if not rows:
            yield Caller(), ()
            return
        digest = _digest(rows)
        caller = Caller(user=digest)
        request = state.requests.get(digest)
        if request is None:
            request = _RequestTools(asyncio.ensure_future(_index_request(state, scout, rows, caller)))
            state.requests[digest] = request
        state.requests.move_to_end(digest)
        request.searches += 1
        try:
            report = await asyncio.shield(request.indexed)
            yield caller, report.dropped
        finally:
            request.searches -= 1
            if request.indexed.done() and (request.indexed.cancelled() or request.indexed.exception()):
                state.requests.pop(digest, None)
            await self._evict(state, scout)

    async def _evict(self, state: _EngineState, scout: Scout) -> None:
        """Remove the tools of the least recently searched requests, unless a search uses them."""
        excess = max(len(state.requests) - self._max_requests, 0)
        for digest in [name for name, item in state.requests.items() if not item.searches][:excess]:
            state.requests.pop(digest, None)
            async with state.publishing:
                if digest not in state.requests:
                    await scout.remove_server(SERVER.key, caller=Caller(user=digest))


async def _index(state: _EngineState, scout: Scout, latest: Latest, revision: int) -> tuple[Dropped, ...]:
    """Index the latest tools, once for all searches that wait for them."""
    async with state.indexing:
        if state.revision >= revision:
            return ()
        shared = latest()
        report = await scout.index([RowsSource(server=SERVER, rows=shared.rows)])
        state.revision = shared.revision
        return report.dropped


async def _index_request(state: _EngineState, scout: Scout, rows: Sequence[Row], caller: Caller) -> IndexReport:
    async with state.publishing:
        return await scout.index([RowsSource(server=SERVER, rows=rows)], caller=caller)


async def _close_scout(state: _EngineState) -> None:
    if state.opening is not None and not state.opening.cancelled() and not state.opening.exception():
        await state.opening.result().__aexit__(None, None, None)


def _digest(rows: Sequence[Row]) -> str:
    text = json.dumps(list(rows), sort_keys=True)
    return "request-" + hashlib.sha256(text.encode()).hexdigest()[:32]
