"""The live servers of a scout: connected in the background, indexed when they change, taken out when long gone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from toolscout.config import Config
from toolscout.downstream.servers import DownstreamServers
from toolscout.errors import ToolscoutError
from toolscout.models import IndexReport, ServerStatus
from toolscout.ports import LiveServer, ToolSource
from toolscout.scout.leases import Leases
from toolscout.settings import Settings
from toolscout.sources.rows import RowsSource
from toolscout.tool_keys import split_key

_REMEMBERED_REPORTS = 100

_log = logging.getLogger("toolscout")
_log.addHandler(logging.NullHandler())  # a program that wants to hear it adds its own

Index = Callable[[Sequence[ToolSource]], Awaitable[IndexReport]]
Remove = Callable[[str], Awaitable[int]]


class CatalogueSync:
    """Keeps the catalogue in step with the servers; no server is waited for but by those who call it."""

    def __init__(
        self,
        config: Config,
        settings: Settings,
        *,
        known: Mapping[str, str],
        index: Index,
        remove: Remove,
        turns: Leases,
    ) -> None:
        """Take the config, the slugs that the catalogue knows with their titles, two ways to change it, and whose turn.

        Other processes may keep the same catalogue: each connects to every server, one at a time indexes it.
        """
        self._config = config
        self._downstream = DownstreamServers(config, settings, known=known)
        self._settings = settings
        self._index = index
        self._remove = remove
        self._turns = turns
        self._listed: dict[str, ToolSource] = {}
        self._gone: set[str] = set()
        self._seen: set[str] = set()
        self._down_since: dict[str, float] = {}
        self._told: set[tuple[str, str]] = set()
        self.reports: list[IndexReport] = []
        """What the last publications did, oldest first."""
        self.changes = 0
        """How often any server came, went, or said that one of its lists changed."""
        self._late: set[str] = set()
        self._failing = False
        self._progress = asyncio.Condition()
        self._publisher: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None

    @property
    def keys(self) -> frozenset[str]:
        """Return the slugs of the servers in the config that are switched on."""
        return frozenset(key for key, server in self._downstream.servers.items() if server.status.state != "disabled")

    @property
    def core(self) -> tuple[str, ...]:
        """Return the keys of the tools that the config wants in every turn."""
        return self._config.core

    async def start(self, after: Awaitable[object] | None = None) -> None:
        """Begin to connect, as soon as `after` has come where it is given; return at once."""
        self._publisher = asyncio.create_task(self._publish())
        if after is None:
            await self._downstream.start(self._changed)
        else:
            self._starting = asyncio.create_task(self._start_after(after))

    async def settled(self) -> None:
        """Wait until every server has answered or failed once, and what came is in the catalogue."""
        async with self._progress:
            await self._progress.wait_for(lambda: not (self._listed or self._gone) and self.keys <= self._seen)

    async def apply(self, config: Config) -> None:
        """Follow an edit of the config: new servers are connected, gone ones leave the catalogue, in the background."""
        before = self.keys
        await self._downstream.apply(config)
        self._config = config
        for key in before - self.keys:
            self._seen.discard(key)
            self._listed.pop(key, None)
            self._down_since.pop(key, None)
        async with self._progress:
            self._gone = (self._gone | before) - self.keys
            self._progress.notify_all()

    async def close(self) -> None:
        """Stop watching and end every session and process."""
        for task in (self._starting, self._publisher):
            if task:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        await self._downstream.close()

    def server(self, key: str) -> LiveServer | None:
        """Return a server by its slug."""
        return self._downstream.servers.get(key)

    def statuses(self) -> list[ServerStatus]:
        """Say how each server is, in the order of slugs."""
        return [self._downstream.servers[key].status for key in sorted(self._downstream.servers)]

    def unavailable(self) -> frozenset[str]:
        """Return the slugs of the servers that are down."""
        return frozenset(key for key, server in self._downstream.servers.items() if server.status.state == "failed")

    async def _start_after(self, after: Awaitable[object]) -> None:
        await after
        await self._downstream.start(self._changed)

    async def _changed(self, key: str) -> None:
        """List a server that changed, for the publisher; note one that went down."""
        self.changes += 1
        server = self._downstream.servers.get(key)
        if server is None:
            return
        try:
            if server.status.state == "ready":
                rows = await server.list_tools()
                self._listed[key] = RowsSource(server=server.server, rows=rows)
                self._down_since.pop(key, None)
            elif server.status.state == "failed":
                self._down_since.setdefault(key, time.monotonic())
                status = server.status
                _log.warning(
                    "server %s is down: %s", status.title, "; ".join(filter(None, (status.detail, status.hint)))
                )
        except ToolscoutError as error:
            self._down_since.setdefault(key, time.monotonic())
            _log.warning("the tools of %s cannot be listed: %s", server.status.title, error.message)
        async with self._progress:
            self._seen.add(key)
            self._progress.notify_all()

    async def _publish(self) -> None:
        """Publish what was listed, everything that is waiting in one generation, and forget who is long gone."""
        while True:
            async with self._progress:
                with suppress(TimeoutError):
                    work = self._progress.wait_for(lambda: bool(self._listed or self._gone))
                    await asyncio.wait_for(work, timeout=60)
                waiting = dict(self._listed)
            try:
                done, again = await self._publish_in_turn(waiting) if waiting else ({}, [])
                await self._turns.note_reached(key for key in self.keys if self._is_ready(key))
                await self._take_out()
                await self._forget()
            except ToolscoutError as error:
                if not self._failing:
                    _log.error("the catalogue cannot be changed now: %s", error.message)
                self._failing = True
                await asyncio.sleep(self._settings.reindex_interval_s)
                continue
            self._failing = False
            async with self._progress:
                for key, provider in done.items():
                    if self._listed.get(key) is provider:
                        del self._listed[key]
                self._progress.notify_all()
            for key in again:
                self._downstream.ask_again(key)
            if len(done) < len(waiting) or self._gone:
                await asyncio.sleep(self._turns.retry_s)

    async def _publish_in_turn(self, waiting: Mapping[str, ToolSource]) -> tuple[dict[str, ToolSource], list[str]]:
        """Index the servers whose turn it is; return them, and those to ask again: too slow, or silent when asked."""
        async with self._turns.take(waiting) as turn:
            mine = {key: source for key, source in waiting.items() if key in turn.until}
            fresh = {key: await self._asked_again(key) if key in self._late else mine[key] for key in mine}
            self._late = (self._late | waiting.keys()) - mine.keys()
            silent = [key for key, source in fresh.items() if source is None]
            if sources := {key: source for key, source in fresh.items() if source is not None and key in self.keys}:
                self.reports.append(await self._index(list(sources.values())))
                del self.reports[:-_REMEMBERED_REPORTS]
                self._tell(self.reports[-1], others=self.keys - sources.keys())
            return mine, [*turn.lost, *silent]

    async def _asked_again(self, key: str) -> ToolSource | None:
        """List a server whose turn came late: what it said before may be older than what another has published."""
        server = self._downstream.servers.get(key)
        try:
            return RowsSource(server=server.server, rows=await server.list_tools()) if server else None
        except ToolscoutError as error:
            _log.warning("the tools of %s cannot be listed: %s", key, error.message)
            return None

    def _tell(self, report: IndexReport, *, others: AbstractSet[str]) -> None:
        """Log what waits for a decision, each thing once for as long as it waits; of `others` nothing is reported."""
        held = {(item.where, f"is held back: {item.reason}") for item in report.quarantined}
        changed = {(key, "has another definition than was seen first or approved") for key in report.offered}
        waits = held | changed
        for key, said in sorted(waits - self._told):
            _log.warning("%r %s (`toolscout changes` shows it)", key, said)
        self._told = waits | {item for item in self._told if split_key(item[0])[0] in others}

    async def _take_out(self) -> None:
        """Remove who left the config, when nobody is in the middle of indexing it: it would come back."""
        async with self._turns.take(tuple(self._gone)) as turn:
            for key in turn.until:
                if key in self._gone:
                    await self._remove(key)
                    self._gone.discard(key)

    async def _forget(self) -> None:
        now = time.monotonic()
        for key in [key for key, since in self._down_since.items() if now - since > self._settings.unavailable_s]:
            if await self._turns.reached_by_none(key):
                await self._remove(key)
                del self._down_since[key]
            else:
                self._down_since[key] = now

    def _is_ready(self, key: str) -> bool:
        server = self._downstream.servers.get(key)
        return server is not None and server.status.state == "ready"
