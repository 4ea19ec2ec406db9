"""Telling clients that a list has changed: on their listen streams (2026), on their connections (before)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from mcp.server.context import CallNext, HandlerResult
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)

from toolscout.gateway.peers import Context

_TELL_S = 2.0


class Announcer:
    """Knows every connection of the handshake era, and the streams of the newer one."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._bus = InMemorySubscriptionBus()
        self._sessions: set[ServerSession] = set()
        self.listen = ListenHandler(self._bus)

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Notice, as a middleware, each connection that finishes its handshake."""
        if ctx.method == "notifications/initialized":
            session = ctx.session
            self._sessions.add(session)
            # The SDK offers a connection's exit stack for cleanup, but no public way to it from a request.
            session._connection.exit_stack.callback(self._sessions.discard, session)  # noqa: SLF001
        return await call_next(ctx)

    async def tools_changed(self) -> None:
        """Say that the list of tools is another."""
        await self._bus.publish(ToolsListChanged())
        await self._tell(lambda session: (session.send_tool_list_changed(),))

    async def offers_changed(self) -> None:
        """Say that the lists of resources and prompts may be others."""
        await self._bus.publish(ResourcesListChanged())
        await self._bus.publish(PromptsListChanged())
        await self._tell(lambda session: (session.send_resource_list_changed(), session.send_prompt_list_changed()))

    async def _tell(self, notices: Callable[[ServerSession], Iterable[Awaitable[None]]]) -> None:
        """Tell every connection; one that does not read holds up nobody else."""

        async def tell(session: ServerSession) -> None:
            for notice in notices(session):
                with suppress(TimeoutError):
                    await asyncio.wait_for(notice, _TELL_S)

        await asyncio.gather(*(tell(session) for session in list(self._sessions)), return_exceptions=True)

    def close(self) -> None:
        """End the listen streams in good order."""
        self.listen.close()
