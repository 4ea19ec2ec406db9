"""Opens a session with a server: over a child process, streamable HTTP or the older HTTP+SSE transport."""

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
from toolscout.downstream.http_body import describe
from toolscout.downstream.http_client import DownstreamHttpClient, open_http, open_sse
from toolscout.downstream.negotiation import Era
from toolscout.downstream.pace import Pace
from toolscout.downstream.process import StderrBuffer, open_process
from toolscout.downstream.quoted_secrets import QuotedSecrets
from toolscout.downstream.reaper import Reaper
from toolscout.downstream.session import Session, open_session
from toolscout.downstream.sign_in.account_auth import AccountAuth
from toolscout.downstream.token_exchange import CallerAuth
from toolscout.errors import ServerUnavailableError
from toolscout.settings import Settings

_READ_LOG = "read its log or its standard error"
_MAX_REASON = 1_000


@dataclass(slots=True, kw_only=True)
class Endpoint:
    """How to reach a server: its config, and what earlier sessions have learned about its protocol."""

    config: ServerConfig
    settings: Settings
    reaper: Reaper
    errors: StderrBuffer
    era: Era = "unknown"
    transport: Transport | None = None
    on_change: Callable[[], None] = field(default=lambda: None)
    auth: httpx2.Auth | None = None
    """What adds a token to the requests."""
    pace: Pace = field(default_factory=Pace)


@asynccontextmanager
async def connect(endpoint: Endpoint) -> AsyncIterator[Session]:
    """Open a session. If the config does not fix the transport and HTTP is refused, try HTTP+SSE."""
    async with AsyncExitStack() as stack:
        transport = endpoint.transport or endpoint.config.transport
        try:
            session = await stack.enter_async_context(_connect_over(endpoint, transport))
        except _HttpRefusedError:
            transport = "sse"
            session = await stack.enter_async_context(_connect_over(endpoint, transport))
        endpoint.transport = transport
        endpoint.era = "modern" if session.protocol.modern else "handshake"
        yield session


class _HttpRefusedError(Exception):
    """Streamable HTTP was refused, and the config does not say that the server speaks it."""


@asynccontextmanager
async def _connect_over(endpoint: Endpoint, transport: Transport) -> AsyncIterator[Session]:
    config, client = endpoint.config, None
    if transport != "stdio":
        client = DownstreamHttpClient(
            config, endpoint.settings, auth=endpoint.auth, contained=transport == "http", pace=endpoint.pace
        )
    # Nothing newer than the handshake is spoken over HTTP+SSE.
    era = "handshake" if transport == "sse" else endpoint.era
    opened = False
    try:
        async with open_session(_streams(endpoint, transport, client), era, endpoint.on_change) as session:
            if client is not None:
                client.on_lost = session.lose
            if isinstance(endpoint.auth, AccountAuth | CallerAuth):
                session.tokens = endpoint.auth.texts
            opened = True
            yield session
    except BaseException as error:
        if opened:
            raise
        # What earlier sessions learned may be out of date: the next attempt negotiates again.
        endpoint.era, endpoint.transport = "unknown", None
        if client is not None and transport == "http" and config.transport_guessed and 400 <= client.refused < 500:
            raise _HttpRefusedError from error
        failure = _failure(endpoint, error, client)
        if failure is None:
            raise
        raise failure from error


def _streams(
    endpoint: Endpoint, transport: Transport, client: DownstreamHttpClient | None
) -> AbstractAsyncContextManager[Any]:
    config = endpoint.config
    if client is not None:
        return open_http(config, endpoint.settings, client) if transport == "http" else open_sse(config, client)
    if os.name == "nt":
        # Windows has neither process groups nor asyncio pipes like ours. The SDK's transport uses a job object there.
        return stdio_client(
            StdioServerParameters(
                command=config.command,
                args=list(config.args),
                env=dict(config.env),
                cwd=config.cwd,
                encoding_error_handler="replace",
            )
        )
    return open_process(config, endpoint.settings, reaper=endpoint.reaper, errors=endpoint.errors, pace=endpoint.pace)


def _failure(
    endpoint: Endpoint, error: BaseException, client: DownstreamHttpClient | None
) -> ServerUnavailableError | None:
    """Return why a session could not be opened, or None for a cancellation, which must stay one."""
    cause = first_cause(error)
    if isinstance(cause, ServerUnavailableError):
        return cause
    if not isinstance(cause, Exception):
        return None
    if client is not None and client.sign_in is not None:
        return client.sign_in
    if client is not None and client.refused in (401, 403):
        reason, hint = f"it denied access ({client.refused})", 'check its "headers" or "oauth"'
    elif client is None and isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED:
        reason, hint = f"it ended before it answered ({endpoint.errors.exit_status})", _READ_LOG
    elif isinstance(cause, MCPError):
        reason = QuotedSecrets(endpoint.config).hide_in_text(cause.message)[:_MAX_REASON]
        hint = (client.hint if client else "") or _READ_LOG
    elif isinstance(cause, httpx2.HTTPError):
        reason, hint = describe(cause), "check its url"
    else:
        reason, hint = type(cause).__name__, _READ_LOG
    return ServerUnavailableError(f"{endpoint.config.title} cannot be reached: {reason}", hint=hint)


def first_cause(error: BaseException) -> BaseException:
    """Return the first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
