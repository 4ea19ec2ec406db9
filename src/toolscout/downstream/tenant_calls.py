"""Slots and a circuit breaker for each tenant of a server: calls of one tenant that hang or fail delay no other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from toolscout.config import ServerConfig
from toolscout.downstream.circuit_breaker import BreakerState, CircuitBreaker
from toolscout.settings import Settings


@dataclass(slots=True)
class TenantCalls:
    """The calls of one tenant to one server."""

    slots: asyncio.Semaphore
    breaker: CircuitBreaker
    running: int = 0


class CallsByTenant:
    """The calls to one server by tenant. A tenant without calls and failures is forgotten."""

    def __init__(self, config: ServerConfig, settings: Settings) -> None:
        """Take the number of slots from the config, and the breaker's limits from the settings."""
        self._config = config
        self._settings = settings
        self._tenants: dict[str, TenantCalls] = {}

    @contextmanager
    def of(self, tenant: str) -> Iterator[TenantCalls]:
        """Yield the calls of a tenant while one of them runs."""
        calls = self._tenants.get(tenant)
        if calls is None:
            calls = self._tenants[tenant] = self._new()
        calls.running += 1
        try:
            yield calls
        finally:
            calls.running -= 1
            if calls.running == 0 and not calls.breaker.failing:
                del self._tenants[tenant]

    def breaker_states(self) -> Iterator[BreakerState]:
        """Yield the state of each tenant's breaker."""
        return (calls.breaker.state for calls in self._tenants.values())

    def note_alive(self) -> None:
        """Record for all tenants that the server answers pings."""
        for calls in self._tenants.values():
            calls.breaker.note_alive()

    def _new(self) -> TenantCalls:
        return TenantCalls(
            slots=asyncio.Semaphore(self._config.concurrency),
            breaker=CircuitBreaker(
                self._config.title,
                failures=self._settings.breaker_failures,
                pause_s=self._settings.breaker_pause_s,
            ),
        )
