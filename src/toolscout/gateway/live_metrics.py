"""The metrics of a running gateway: what was counted, and the state of servers, store and sessions at this moment."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib.metadata import version

from toolscout.errors import ToolscoutError
from toolscout.gateway.diagnostics import PING_S, Readiness
from toolscout.gateway.server import Gateway
from toolscout.telemetry import Metrics

_STATES = ("connecting", "ready", "needs_login", "failed", "disabled")
_TRIPPED = ("open", "half_open")


class LiveMetrics:
    """Reads the metrics of one gateway."""

    def __init__(self, gateway: Gateway, readiness: Readiness) -> None:
        self._gateway = gateway
        self._readiness = readiness
        gateway.scout.metrics.info.set_all({(version("toolscout"),): 1})

    async def read(self) -> bytes:
        """Return all metrics as Prometheus reads them. A store that hangs delays them by a second at most."""
        scout = self._gateway.scout
        metrics = scout.metrics
        is_up = await self._readiness.store_answers()
        with suppress(ToolscoutError, TimeoutError):
            async with asyncio.timeout(PING_S):
                overview = await scout.overview()
            metrics.tools.set_all({(): overview.total})
            metrics.generation.set_all({(): overview.generation})
        metrics.store_up.set_all({(): int(is_up)})
        self._read_servers(metrics)
        if scout.sync is not None:
            metrics.index_waiting.set_all({(): len(scout.sync.waiting)})
            metrics.index_lag.set_all({(): round(scout.sync.lag_s, 3)})
        sessions, streams = self._gateway.notifier.open_connections
        metrics.sessions.set_all({("session",): sessions, ("listen_stream",): streams})
        return metrics.render()

    def _read_servers(self, metrics: Metrics) -> None:
        servers = self._gateway.scout.servers
        states = servers.states()
        counts: dict[tuple[str, ...], float] = {(state,): 0 for state in _STATES}
        for state in states.values():
            counts[(state,)] += 1
        metrics.servers.set_all(counts)
        enabled = {key: state for key, state in states.items() if state != "disabled"}
        metrics.server_up.set_all({(key,): int(state == "ready") for key, state in enabled.items()})
        closed: dict[tuple[str, ...], float] = {(key, state): 0 for key in states for state in _TRIPPED}
        metrics.breakers.set_all(closed | servers.tripped_breakers())
