"""Notifications that a list has changed, sent on listen streams (2026) and on connections (handshake eras).

Subscriptions are grouped by caller, so a change that only one caller can see is sent to that caller alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mcp.server.context import CallNext, HandlerResult
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)
from mcp_types import SubscriptionsListenRequestParams

from toolscout.gateway.client import Context
from toolscout.models import Caller

_SEND_TIMEOUT_S = 2.0

Identify = Callable[[Context], Caller]
Digest = Callable[[Caller], Awaitable[str | None]]


@dataclass(eq=False)
class _Subscriber:
    """The connections and listen streams of one caller, and the digest of the tool list that they were sent last."""

    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    sessions: set[ServerSession] = field(default_factory=set)
    streams: int = 0
    digest: str | None = None

    def __post_init__(self) -> None:
        self.listen = ListenHandler(self.bus)


class ListChangeNotifier:
    """Notifies handshake clients on their connections and newer clients on their listen streams, by caller."""

    def __init__(self, identify: Identify, digest: Digest) -> None:
        """Take a function that finds the caller of a request, and one that returns the digest of their tool list."""
        self._identify = identify
        self._digest = digest
        self._subscribers: dict[Caller, _Subscriber] = {}

    @property
    def callers(self) -> frozenset[Caller]:
        """The callers with an open connection or stream."""
        return frozenset(self._subscribers)

    @property
    def open_connections(self) -> tuple[int, int]:
        """How many sessions and how many listen streams are open."""
        subscribers = self._subscribers.values()
        return sum(len(item.sessions) for item in subscribers), sum(item.streams for item in subscribers)

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Register each connection that finishes its handshake. This is called as a middleware."""
        if ctx.method == "notifications/initialized":
            caller, session = _without_servers(self._identify(ctx)), ctx.session
            (await self._subscriber(caller)).sessions.add(session)
            # The SDK has an exit stack for each connection, but no public access to it from a request.
            session._connection.exit_stack.callback(self._unsubscribe, caller, session)  # noqa: SLF001
        return await call_next(ctx)

    async def listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> Any:
        """Serve one listen stream of a caller."""
        async with self._listening(_without_servers(self._identify(ctx))) as subscriber:
            return await subscriber.listen(ctx, params)

    async def notify_changed_tools(self) -> None:
        """Notify each caller whose tool list has changed since their last notification."""
        changed = []
        for caller, subscriber in list(self._subscribers.items()):
            digest = await self._digest(caller)
            if digest not in (subscriber.digest, None):
                subscriber.digest = digest
                await subscriber.bus.publish(ToolsListChanged())
                changed.append(subscriber)
        await _send(changed, lambda session: (session.send_tool_list_changed(),))

    async def notify_changed_resources(self) -> None:
        """Notify everyone that the lists of resources and prompts may have changed."""
        subscribers = list(self._subscribers.values())
        for subscriber in subscribers:
            await subscriber.bus.publish(ResourcesListChanged())
            await subscriber.bus.publish(PromptsListChanged())
        await _send(
            subscribers, lambda session: (session.send_resource_list_changed(), session.send_prompt_list_changed())
        )

    def close(self) -> None:
        """Close the listen streams."""
        for subscriber in self._subscribers.values():
            subscriber.listen.close()

    async def _subscriber(self, caller: Caller) -> _Subscriber:
        subscriber = self._subscribers.get(caller)
        if subscriber is None:
            digest = await self._digest(caller)
            subscriber = self._subscribers.setdefault(caller, _Subscriber(digest=digest))
        return subscriber

    @asynccontextmanager
    async def _listening(self, caller: Caller) -> AsyncIterator[_Subscriber]:
        subscriber = await self._subscriber(caller)
        subscriber.streams += 1
        try:
            yield subscriber
        finally:
            subscriber.streams -= 1
            self._unsubscribe(caller)

    def _unsubscribe(self, caller: Caller, session: ServerSession | None = None) -> None:
        """Remove a connection, and its caller when it was the last."""
        subscriber = self._subscribers.get(caller)
        if subscriber is None:
            return
        if session is not None:
            subscriber.sessions.discard(session)
        if not subscriber.sessions and not subscriber.streams:
            del self._subscribers[caller]


async def _send(
    subscribers: Iterable[_Subscriber], notifications: Callable[[ServerSession], Iterable[Awaitable[None]]]
) -> None:
    """Send to every connection at once. A client that does not read delays no other."""

    async def send(session: ServerSession) -> None:
        for notification in notifications(session):
            with suppress(TimeoutError):
                await asyncio.wait_for(notification, _SEND_TIMEOUT_S)

    sessions = [session for subscriber in subscribers for session in subscriber.sessions]
    await asyncio.gather(*(send(session) for session in sessions), return_exceptions=True)


def _without_servers(caller: Caller) -> Caller:
    """Return the caller without the reachable servers, which change with the config."""
    return replace(caller, servers=None)
