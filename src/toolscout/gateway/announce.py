"""Telling clients that a list has changed: on their listen streams (2026), on their connections (before).

Each caller has a room of their own, so that a change which one caller sees is told to that caller alone.
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

from toolscout.gateway.peers import Context
from toolscout.models import Caller

_TELL_S = 2.0

Identify = Callable[[Context], Caller]
Digest = Callable[[Caller], Awaitable[str | None]]


@dataclass(eq=False)
class _Room:
    """The connections and streams of one caller, and what list they were told of last."""

    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    sessions: set[ServerSession] = field(default_factory=set)
    streams: int = 0
    shown: str | None = None

    def __post_init__(self) -> None:
        self.listen = ListenHandler(self.bus)


class Announcer:
    """Knows every connection of the handshake era, and the streams of the newer one, by caller."""

    def __init__(self, identify: Identify, digest: Digest) -> None:
        """Begin with nobody; `digest` names the list that a caller is shown now."""
        self._identify = identify
        self._digest = digest
        self._rooms: dict[Caller, _Room] = {}

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Notice, as a middleware, each connection that finishes its handshake."""
        if ctx.method == "notifications/initialized":
            caller, session = _alone(self._identify(ctx)), ctx.session
            (await self._room(caller)).sessions.add(session)
            # The SDK offers a connection's exit stack for cleanup, but no public way to it from a request.
            session._connection.exit_stack.callback(self._leave, caller, session)  # noqa: SLF001
        return await call_next(ctx)

    async def listen(self, ctx: Context, params: SubscriptionsListenRequestParams) -> Any:
        """Serve one listen stream, in the room of its caller."""
        async with self._listening(_alone(self._identify(ctx))) as room:
            return await room.listen(ctx, params)

    async def look(self) -> None:
        """Tell each caller whose list of tools is another than they were told of last."""
        changed = []
        for caller, room in list(self._rooms.items()):
            now = await self._digest(caller)
            if now not in (room.shown, None):
                room.shown = now
                await room.bus.publish(ToolsListChanged())
                changed.append(room)
        await _tell(changed, lambda session: (session.send_tool_list_changed(),))

    async def offers_changed(self) -> None:
        """Say that the lists of resources and prompts may be others."""
        rooms = list(self._rooms.values())
        for room in rooms:
            await room.bus.publish(ResourcesListChanged())
            await room.bus.publish(PromptsListChanged())
        await _tell(rooms, lambda session: (session.send_resource_list_changed(), session.send_prompt_list_changed()))

    def close(self) -> None:
        """End the listen streams in good order."""
        for room in self._rooms.values():
            room.listen.close()

    async def _room(self, caller: Caller) -> _Room:
        room = self._rooms.get(caller)
        if room is None:
            shown = await self._digest(caller)
            room = self._rooms.setdefault(caller, _Room(shown=shown))
        return room

    @asynccontextmanager
    async def _listening(self, caller: Caller) -> AsyncIterator[_Room]:
        room = await self._room(caller)
        room.streams += 1
        try:
            yield room
        finally:
            room.streams -= 1
            self._leave(caller)

    def _leave(self, caller: Caller, session: ServerSession | None = None) -> None:
        """Let a connection go, and its room when it was the last."""
        room = self._rooms.get(caller)
        if room is None:
            return
        if session is not None:
            room.sessions.discard(session)
        if not room.sessions and not room.streams:
            del self._rooms[caller]


async def _tell(rooms: Iterable[_Room], notices: Callable[[ServerSession], Iterable[Awaitable[None]]]) -> None:
    """Tell every connection; one that does not read holds up nobody else."""

    async def tell(session: ServerSession) -> None:
        for notice in notices(session):
            with suppress(TimeoutError):
                await asyncio.wait_for(notice, _TELL_S)

    sessions = [session for room in rooms for session in room.sessions]
    await asyncio.gather(*(tell(session) for session in sessions), return_exceptions=True)


def _alone(caller: Caller) -> Caller:
    """Return who it is, whatever servers they reach at the moment."""
    return replace(caller, servers=None)
