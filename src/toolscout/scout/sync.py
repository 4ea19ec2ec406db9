"""Keeps the catalogue in step with the live servers: a change is listed, then indexed for each tenant of the server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from collections.abc import Set as AbstractSet
from contextlib import suppress

from toolscout.config import Config
from toolscout.errors import SignInRequiredError, ToolscoutError
from toolscout.models import LOCAL, OUTPUT_HINT, IndexReport, Scope, ServerStatus
from toolscout.ports import ToolSource
from toolscout.scout.indexer import Indexer
from toolscout.scout.servers import LiveServers
from toolscout.settings import Settings
from toolscout.sources.rows import RowsSource
from toolscout.tool_keys import split_key

_STATES = {"failed": "down", "needs_login": "not signed in to"}
_REMEMBERED_REPORTS = 100
_IDLE_S = 60.0

_log = logging.getLogger("toolscout")
_log.addHandler(logging.NullHandler())  # a program that wants to see the log adds its own handler

Target = tuple[Scope, str]
"""A scope, and the slug of a live server that is indexed for it."""


class CatalogueSync:
    """Follows live servers in the background. Only calls to a server's own tools ever wait for it.

    Other processes may share the catalogue. Each of them connects to every server. A lease makes sure that only one
    at a time indexes a given server for a given tenant.
    """

    def __init__(self, indexer: Indexer, servers: LiveServers, settings: Settings) -> None:
        self._indexer = indexer
        self._servers = servers
        self._settings = settings
        self._config = Config()
        self._listed: dict[Target, ToolSource] = {}
        self._listed_at: dict[Target, float] = {}
        self._removals: set[Target] = set()
        self._delayed: set[Target] = set()
        self._answered: set[str] = set()
        self._down_since: dict[str, float] = {}
        self._logged: dict[Scope, set[tuple[str, str]]] = {}
        self.reports: list[IndexReport] = []
        """The reports of the last publications, oldest first."""
        self._failing = False
        self._progress = asyncio.Condition()
        self._publisher: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None

    @property
    def core(self) -> tuple[str, ...]:
        """Return the keys of the tools that the config lists as always included."""
        return self._config.core

    @property
    def waiting(self) -> frozenset[tuple[Scope, str]]:
        """Return what was listed and waits to be published, for instance until another process releases its lease."""
        return frozenset(self._listed)

    @property
    def lag_s(self) -> float:
        """Return how long the oldest of them has waited."""
        return max((time.monotonic() - self._listed_at[target] for target in self._listed), default=0.0)

    @property
    def _waits_for_publisher(self) -> bool:
        return bool(self._listed or self._removals or self._servers.has_dropped)

    @property
    def delayed(self) -> frozenset[tuple[Scope, str]]:
        """Return what waits for another process, and is listed again before it is published."""
        return frozenset(self._delayed)

    def statuses(self) -> list[ServerStatus]:
        """Return the status of each live server, in the order of slugs."""
        return self._servers.statuses()

    async def start(self, config: Config, after: Awaitable[object] | None = None) -> None:
        """Begin to connect, if `after` is given once that is done, and return at once."""
        self._config = config
        tenants = await self._indexer.tenants()
        self._servers.add_tenants(tenants)
        self._servers.configure(config, await self._stored_titles(tenants))
        self._publisher = asyncio.create_task(self._publish_forever())
        if after is None:
            await self._servers.start(self._list_changed, self.list_user)
        else:
            self._starting = asyncio.create_task(self._start_after(after))

    async def settled(self) -> None:
        """Wait until every server has answered or failed once, and the catalogue is in step with them."""
        async with self._progress:
            await self._progress.wait_for(
                lambda: not self._waits_for_publisher and self._servers.keys <= self._answered
            )

    async def apply(self, config: Config) -> None:
        """Follow an edit of the config in the background: servers are connected, indexed, removed, for each tenant."""
        before = self._servers.targets()
        per_user = {key for key in self._servers.keys if self._servers.is_per_user(key)}
        await self._servers.apply(config)
        self._config = config
        before |= await self._indexer.users_of(per_user - self._servers.keys)
        after = self._servers.targets()
        self._answered -= {key for _, key in before ^ after}
        self._delayed &= after
        self._down_since = {key: since for key, since in self._down_since.items() if key in self._servers.keys}
        async with self._progress:
            for target in before - after:
                self._listed.pop(target, None)
            self._removals = (self._removals | before) - after
            self._progress.notify_all()

    async def close(self) -> None:
        """Stop following, and end every session and process."""
        for task in (self._starting, self._publisher):
            if task:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        await self._servers.close()

    async def _start_after(self, after: Awaitable[object]) -> None:
        await after
        await self._servers.start(self._list_changed, self.list_user)

    async def _stored_titles(self, tenants: AbstractSet[str]) -> dict[str, str]:
        """Return slug -> title over all tenants that servers are indexed for: a live server has one slug for all."""
        names = [tenants if item.tenants == "all" else set(item.tenants or ()) for item in self._config.servers]
        titles: dict[str, str] = {}
        for scope in [Scope(), *(Scope(tenant=tenant) for tenant in sorted(set().union(*names) - {LOCAL}))]:
            titles = {**await self._indexer.titles(scope), **titles}
        return titles

    async def _list_changed(self, key: str) -> None:
        """List the tools of a server that changed, for the publisher, or note that the server went down."""
        server = self._servers.get(key)
        if server is None:
            return
        try:
            if server.status.state == "ready":
                if server.tenants == "all":
                    self._servers.add_tenants(await self._indexer.tenants())
                if self._servers.is_per_user(key):
                    for scope in await self._servers.find_users(key):
                        await self.list_user(key, scope)
                else:
                    source = RowsSource(server=server.server, rows=await server.list_tools())
                    for scope in self._servers.scopes_of(key):
                        self._wait_for_publication((scope, key), source)
                self._down_since.pop(key, None)
            elif server.status.state in ("failed", "needs_login"):
                status = server.status
                if status.state == "failed":  # the tools of a server that waits for a sign-in stay
                    self._down_since.setdefault(key, time.monotonic())
                else:
                    self._down_since.pop(key, None)
                output = OUTPUT_HINT if status.stderr.strip() else ""
                reason = "; ".join(filter(None, (status.detail, status.hint, output)))
                _log.warning("server %s is %s: %s", status.title, _STATES[status.state], reason)
        except SignInRequiredError:
            return  # the server reports that it waits for a sign-in
        except ToolscoutError as error:
            self._down_since.setdefault(key, time.monotonic())
            _log.warning("the tools of %s cannot be listed: %s", server.status.title, error.message)
        async with self._progress:
            self._answered.add(key)
            self._progress.notify_all()

    async def list_user(self, key: str, scope: Scope) -> None:
        """List the tools of a server for a user who has a token of their own there, for the publisher."""
        server = self._servers.get(key)
        self._servers.add_user(key, scope)
        source = await self._list_delayed(key, scope) if server is not None else None
        if source is not None:
            async with self._progress:
                self._wait_for_publication((scope, key), source)
                self._progress.notify_all()

    def _wait_for_publication(self, target: Target, source: ToolSource) -> None:
        if target not in self._listed:
            self._listed_at[target] = time.monotonic()
        self._listed[target] = source

    async def _publish_forever(self) -> None:
        """Publish what was listed, and remove the servers that left the config or are long gone."""
        while True:
            async with self._progress:
                with suppress(TimeoutError):
                    # Not `asyncio.wait_for`: in Python 3.11 it can lose a cancellation, and `close` would wait forever.
                    async with asyncio.timeout(_IDLE_S):
                        await self._progress.wait_for(lambda: self._waits_for_publisher)
                listed = dict(self._listed)
            try:
                published, list_again = await self._publish(listed)
                await self._indexer.leases.note_reached(self._servers.ready())
                await self._remove_dropped()
                await self._servers.forget_dropped()
                await self._remove_unavailable()
            except ToolscoutError as error:
                if not self._failing:
                    _log.error("the catalogue cannot be changed now: %s", error.message)
                self._failing = True
                await asyncio.sleep(self._settings.reindex_interval_s)
                continue
            self._failing = False
            async with self._progress:
                for target in published:
                    if self._listed.get(target) is listed[target]:
                        del self._listed[target]
                self._progress.notify_all()
            for key in list_again:
                self._servers.list_again(key)
            if len(published) < len(listed) or self._removals:
                await asyncio.sleep(self._indexer.leases.retry_s)

    async def _publish(self, listed: dict[Target, ToolSource]) -> tuple[set[Target], set[str]]:
        """Index what was listed into each scope, as far as its lease is free.

        Return what is done, and the servers to list again: those whose lease expired meanwhile, and those that could
        not be listed again after their lease came late.
        """
        published: set[Target] = set()
        list_again: set[str] = set()
        for scope in sorted({scope for scope, _ in listed}, key=lambda item: item.tenant):
            sources = {key: source for (item, key), source in listed.items() if item == scope}
            async with self._indexer.leases.try_hold(scope, sources) as leases:
                for key in leases.until:
                    if (scope, key) in self._delayed:
                        fresh = await self._list_delayed(key, scope)
                        if fresh is None:
                            list_again.add(key)
                            del sources[key]
                        else:
                            sources[key] = fresh
                self._delayed |= {(scope, key) for key in sources if key not in leases.until}
                self._delayed -= {(scope, key) for key in leases.until}
                targets = self._servers.targets()
                current = [sources[key] for key in leases.until if key in sources and (scope, key) in targets]
                if current:
                    report = await self._indexer.index(current, scope, leases=leases)
                    self.reports = [*self.reports, report][-_REMEMBERED_REPORTS:]
                    self._log_report(scope, report, {source.server.key for source in current})
                published |= {(scope, key) for key in leases.until}
                list_again.update(leases.lost)
        return published, list_again

    async def _list_delayed(self, key: str, scope: Scope) -> ToolSource | None:
        """List a server again whose lease came late: another process may have published a newer list meanwhile."""
        server = self._servers.get(key)
        try:
            return RowsSource(server=server.server, rows=await self._servers.list_tools(key, scope)) if server else None
        except ToolscoutError as error:
            _log.warning("the tools of %s cannot be listed: %s", key, error.message)
            return None

    def _log_report(self, scope: Scope, report: IndexReport, servers: set[str]) -> None:
        """Log what an operator has to decide, each thing once for as long as it waits, whatever tenants have it."""
        lines = {
            (item.where, f"is held back: {item.reason} (`toolscout changes` shows it)") for item in report.quarantined
        }
        lines |= {
            (key, "has another definition than the approved or first seen one (`toolscout changes` shows it)")
            for key in report.offered
        }
        lines |= {(item.where, f"may be confused: {item.reason}") for item in report.look_alikes}
        logged = {line for scope_lines in self._logged.values() for line in scope_lines}
        for key, line in sorted(lines - logged):
            _log.warning("%r %s", key, line)
        of_others = {item for item in self._logged.get(scope, set()) if split_key(item[0])[0] not in servers}
        self._logged[scope] = lines | of_others
        for item in report.collisions:
            _log.info("tenant %s: server %r: %s", scope.tenant, item.where, item.reason)

    async def _remove_dropped(self) -> None:
        """Remove what left the config, unless another process is indexing it: it would come back."""
        for scope in {scope for scope, _ in self._removals}:
            keys = [key for item, key in self._removals if item == scope]
            async with self._indexer.leases.try_hold(scope, keys) as leases:
                for key in leases.until:
                    if (scope, key) in self._removals:
                        await self._indexer.remove_server(scope, key, leases)
                        # A server that is only switched off keeps its accounts.
                        if scope.owner is not None and key in self._servers.keys:
                            await self._servers.forget_accounts(scope, key)
                        self._removals.discard((scope, key))

    async def _remove_unavailable(self) -> None:
        """Remove the servers that no replica has reached for a long time."""
        now = time.monotonic()
        for key in [key for key, since in self._down_since.items() if now - since > self._settings.unavailable_s]:
            if await self._indexer.leases.reached_by_none(key):
                for scope in self._servers.scopes_of(key):
                    await self._indexer.remove_server(scope, key)
                del self._down_since[key]
            else:
                self._down_since[key] = now
