"""A server's config in, an open session out: over a process, streamable HTTP or the older event stream."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from toolscout.config import ServerConfig, Transport
from toolscout.downstream.http_client import DownstreamHttpClient, in_words, open_http, open_sse
from toolscout.downstream.negotiation import Era
from toolscout.downstream.process import StderrBuffer, open_process
from toolscout.downstream.reaper import Reaper
from toolscout.downstream.session import Session, open_session
from toolscout.errors import ServerUnavailableError
from toolscout.settings import Settings

_ASK = "see what it says in its log or on standard error"


@dataclass(slots=True, kw_only=True)
class Endpoint:
    """What is known of the way to a server: its config, and what earlier sessions found out."""

    config: ServerConfig
    settings: Settings
    reaper: Reaper
    errors: StderrBuffer
    era: Era = "unknown"
    transport: Transport | None = None
    changed: Callable[[], None] = field(default=lambda: None)


@asynccontextmanager
async def connect(route: Endpoint) -> AsyncIterator[Session]:
    """Open a session; where the config leaves the transport open and HTTP is refused, the older one is tried."""
    async with AsyncExitStack() as stack:
        transport = route.transport or route.config.transport
        try:
            session = await stack.enter_async_context(_dialled(route, transport))
        except _RefusedError:
            transport = "sse"
            session = await stack.enter_async_context(_dialled(route, transport))
        route.transport = transport
        route.era = "modern" if session.agreed.modern else "handshake"
        yield session


class _RefusedError(Exception):
    """Streamable HTTP was refused where the config leaves it open whether it is spoken."""


@asynccontextmanager
async def _dialled(route: Endpoint, transport: Transport) -> AsyncIterator[Session]:
    client = (
        DownstreamHttpClient(route.config, route.settings, contained=transport == "http")
        if transport != "stdio"
        else None
    )
    opened = False
    try:
        async with open_session(_transport(route, transport, client), _era(route, transport), route.changed) as session:
            if client is not None:
                client.on_lost = session.lose
            opened = True
            yield session
    except BaseException as error:
        if opened:
            raise
        # What was learnt may be out of date: the next attempt asks again.
        route.era, route.transport = "unknown", None
        if (
            client is not None
            and transport == "http"
            and route.config.transport_guessed
            and 400 <= client.refused < 500
        ):
            raise _RefusedError from error
        failure = _failure(route, error, client)
        if failure is None:
            raise
        raise failure from error


def _era(route: Endpoint, transport: Transport) -> Era:
    """The event stream belongs to the handshake era: nothing newer is spoken over it."""
    return "handshake" if transport == "sse" else route.era


def _transport(
    route: Endpoint, transport: Transport, client: DownstreamHttpClient | None
) -> AbstractAsyncContextManager[Any]:
    if client is not None:
        return (
            open_http(route.config, route.settings, client) if transport == "http" else open_sse(route.config, client)
        )
    if os.name == "nt":
        # Windows has neither groups nor our pipes: the SDK's transport, with a job object, does there what it can.
        return stdio_client(
            StdioServerParameters(
                command=route.config.command,
                args=list(route.config.args),
                env=dict(route.config.env),
                cwd=route.config.cwd,
                encoding_error_handler="replace",
            )
        )
    return open_process(route.config, route.settings, reaper=route.reaper, errors=route.errors)


def _failure(
    route: Endpoint, error: BaseException, client: DownstreamHttpClient | None
) -> ServerUnavailableError | None:
    """Say in one sentence why a session could not be opened; None for a cancellation, which stays one."""
    found = first_cause(error)
    if isinstance(found, ServerUnavailableError):
        return found
    if not isinstance(found, Exception):
        return None
    if client is not None and client.refused in (401, 403):
        reason, hint = f"it refused us ({client.refused})", 'check its "headers" or "oauth"'
    elif client is None and isinstance(found, MCPError) and found.code == CONNECTION_CLOSED:
        reason, hint = f"it ended before it answered ({route.errors.ended})", _ASK
    elif isinstance(found, MCPError):
        reason, hint = found.message, (client.hint if client else "") or _ASK
    elif isinstance(found, httpx2.HTTPError):
        reason, hint = in_words(found), "check its url"
    else:
        reason, hint = type(found).__name__, _ASK
    return ServerUnavailableError(f"{route.config.title} cannot be reached: {reason}", hint=hint)


def first_cause(error: BaseException) -> BaseException:
    """Return the first plain error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
