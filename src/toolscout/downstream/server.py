"""One server: its calls are bounded in time and number, each is sent exactly once, and its failures become errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import httpx2
from cachetools import Cache, LRUCache
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp_types import METHOD_NOT_FOUND

from toolscout.config import ServerConfig
from toolscout.downstream.circuit_breaker import BreakerState, CircuitBreaker
from toolscout.downstream.connect import Endpoint, connect
from toolscout.downstream.credentials import ServerCredentials
from toolscout.downstream.failures import data_of, is_session_end, rewrite, timed_out, to_call_error
from toolscout.downstream.http_client import NEEDS_LOGIN, NO_TOKEN, UNREACHABLE
from toolscout.downstream.in_flight import InFlightRequest, NotSentError, call_timeout_s
from toolscout.downstream.paging import ToolPages, read_all_pages
from toolscout.downstream.process import StderrBuffer
from toolscout.downstream.quoted_secrets import QuotedSecrets
from toolscout.downstream.reaper import Reaper
from toolscout.downstream.reconnect import ConnectionState, ReconnectingSession
from toolscout.downstream.session import Session
from toolscout.downstream.sessions import SessionPool, SessionTask
from toolscout.downstream.sign_in.account_store import AccountStore
from toolscout.downstream.tenant_calls import CallsByTenant, TenantCalls
from toolscout.errors import CallError, ServerUnavailableError, SignInRequiredError
from toolscout.models import Caller, Scope, Server, ServerStatus
from toolscout.ports import Upstream
from toolscout.settings import Settings
from toolscout.telemetry import Metrics
from toolscout.telemetry.mcp_operation import describe_call, mcp_operation

_MAX_LISTS = 4_096
_STDERR_CHARS = 4_000
_RETRY_LIST_S = 60.0
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class _Listed:
    """What is remembered of a list of tools: of everyone's, or of one user's."""

    count: int
    header_params: Mapping[str, dict[tuple[str, ...], str]]
    """By tool, the parameters that are sent in headers too."""


class DownstreamServer:
    """A server that is reached over MCP (`ports.LiveServer`)."""

    def __init__(
        self,
        key: str,
        config: ServerConfig,
        settings: Settings,
        reaper: Reaper,
        *,
        on_change: Callable[[], None],
        accounts: AccountStore | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Take the server's slug and config. `on_change` is called when its tools may have to be indexed again.

        `accounts` are those of people who signed in.
        """
        self.key = key
        self.config = config
        self._settings = settings
        self.timeout_s = call_timeout_s(config, settings)
        """How long a call may take."""
        self._errors = StderrBuffer(settings.stderr_bytes)
        self._endpoint = Endpoint(
            config=config, settings=settings, reaper=reaper, errors=self._errors, on_change=on_change
        )
        self._durations = (metrics or Metrics()).mcp_client
        self._network = _network_of(config)
        # What a server lists may depend on who has signed in.
        self._credentials = ServerCredentials(key, config, settings, accounts, on_sign_in=on_change)
        shared = self._credentials.shared()
        self._first = ReconnectingSession(
            config,
            settings,
            self._open,
            self._errors,
            on_change,
            on_alive=lambda: self._calls.note_alive(),
            signed_in=shared.signed_in if shared else None,
        )
        self._pool = SessionPool(config, self._open)
        self._calls = CallsByTenant(config, settings)
        self._secrets = QuotedSecrets(config)
        self._listed: LRUCache[Scope, _Listed] = LRUCache(_MAX_LISTS)
        self._most_tools = 0
        self._latest_params: LRUCache[str, dict[tuple[str, ...], str]] = LRUCache(_MAX_LISTS)
        self.ttl_s: float | None = None
        """When to list the tools again, or None if the list is valid until the server reports a change."""

    @property
    def server(self) -> Server:
        """The server as the catalogue stores it."""
        return replace(self.config.server, key=self.key)

    @property
    def tenants(self) -> tuple[str, ...] | Literal["all"] | None:
        """The tenants of the config."""
        return self.config.tenants

    @property
    def status(self) -> ServerStatus:
        """The state of the server."""
        return ServerStatus(
            server=self.key,
            title=self.config.title,
            state=self._first.state,
            detail=self._first.detail,
            tools=self._most_tools,
            protocol=self._first.protocol,
            since=self._first.since,
            stderr=self._secrets.hide_in_text(self._errors.text(_STDERR_CHARS)),
            hint=self._first.hint,
        )

    @property
    def state(self) -> ConnectionState:
        """The state of the server alone, which costs less than all of its status."""
        return self._first.state

    def breaker_states(self) -> Iterable[BreakerState]:
        """Return the states of the circuit breakers of its tenants. One that nobody uses is closed."""
        return self._calls.breaker_states()

    async def missing_sign_in(self, scope: Scope) -> str:
        """Return what a user does to sign in for themselves, or "" if they have, or if nobody does here."""
        return await self._credentials.missing_sign_in(scope)

    def start(self) -> None:
        """Start to connect in the background and keep trying. If each user signs in, nothing is connected for all."""
        if self.config.enabled and self.config.per_user and not self.config.problem:
            detail = "each user signs in" if self.config.allows_sign_in else "each caller's token is exchanged"
            self._first.start_per_user(detail, self._pool.close_idle())
        elif self.config.enabled:
            self._first.start(self._pool.close_idle())

    async def close(self) -> None:
        """End every session and process of this server."""
        await asyncio.gather(self._first.close(), self._pool.close())
        await self._credentials.close()

    def _open(self, config: ServerConfig | None = None, auth: httpx2.Auth | None = None) -> SessionTask:
        config = config or self._endpoint.config
        endpoint = replace(self._endpoint, config=config, auth=auth or self._credentials.own_auth(config))
        return SessionTask(self.config.title, lambda: connect(endpoint), self._settings.connect_timeout_s)

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the definitions of all tools, as the server sent them."""
        session = await self._first.session()
        capability = session.protocol.capabilities.get("tools")

        async def fetch(params: Mapping[str, Any]) -> Mapping[str, Any]:
            try:
                return await self._exchange("tools/list", params, Caller(), InFlightRequest(), first_session=True)
            except CallError as error:
                if capability is None and error.details.get("code") == METHOD_NOT_FOUND:
                    return {"tools": []}
                raise

        # If the list cannot be read now, it is requested again soon.
        self.ttl_s = _RETRY_LIST_S
        pages = await read_all_pages(fetch, self._settings)
        await self._check_list(pages)
        self._remember(Scope(), pages, modern=session.protocol.modern)
        return pages.tools

    async def _check_list(self, pages: ToolPages) -> None:
        """Raise SignInRequiredError if a server lists nothing before somebody signs in: its stored tools then stay."""
        tokens = self._credentials.shared()
        if pages.tools or tokens is None:
            return
        try:
            await tokens.check_empty_list()
        except SignInRequiredError as error:
            self.ttl_s = None
            self._first.wait_for_sign_in(error)
            raise

    async def list_tools_of(self, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """Return the definitions that the server lists for a user, with a token of their own."""
        modern = False

        async def fetch(params: Mapping[str, Any]) -> Mapping[str, Any]:
            nonlocal modern
            async with self._session_of(caller) as session:
                modern = session.protocol.modern
            return await self._exchange("tools/list", params, caller, InFlightRequest())

        pages = await read_all_pages(fetch, self._settings)
        self._remember(caller.scope, pages, modern=modern)
        self.ttl_s = None
        return pages.tools

    @asynccontextmanager
    async def _session_of(self, caller: Caller) -> AsyncIterator[Session]:
        """Lend the session of a caller whose token is their own: exchanged, or of somebody who has signed in."""
        auth, sign_in = await self._credentials.of(caller)
        async with self._pool.session(caller, auth, sign_in) as session:
            yield session

    def _remember(self, scope: Scope, pages: ToolPages, *, modern: bool) -> None:
        self.ttl_s = pages.ttl_s
        if self._first.state == "ready":
            self._first.detail = pages.truncated
        header_params = {}
        if modern and self.config.transport != "stdio":
            for tool in pages.with_headers:
                schema = tool.get("inputSchema")
                if isinstance(schema, Mapping) and find_invalid_x_mcp_header(schema) is None:
                    params = x_mcp_header_map(schema)
                    if params:
                        header_params[str(tool.get("name"))] = params
        self._listed[scope] = _Listed(len(pages.tools), header_params)
        # `LRUCache.values` would count as a use of each list.
        self._most_tools = max(Cache.__getitem__(self._listed, each).count for each in self._listed)
        for tool in pages.tools:
            self._latest_params.pop(str(tool.get("name")), None)
        self._latest_params.update(header_params)

    def _headers_of(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> dict[str, str]:
        """Return the arguments that a server wants in headers too, as it listed the tool for the caller.

        Another replica may have listed it for them: then as it did for somebody else.
        """
        own = self._listed.get(caller.scope if self.config.per_user else Scope())
        params = (self._latest_params if own is None else own.header_params).get(name)
        return mcp_param_headers(params, arguments) if params else {}

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        caller: Caller,
        upstream: Upstream | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """Call a tool once and return its raw result. `extra` are further parameters of the request."""
        return await self.call_tool_within(
            name, arguments, within_s=self.timeout_s, caller=caller, upstream=upstream, extra=extra
        )

    async def call_tool_within(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        within_s: float,
        caller: Caller,
        upstream: Upstream | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """Call a tool once, in the part of its time that is left."""
        params = {**(extra or {}), "name": name, "arguments": dict(arguments)}
        request = InFlightRequest(upstream, self._headers_of(name, arguments, caller))
        return await self._exchange("tools/call", params, caller, request, within_s=within_s)

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, caller: Caller, upstream: Upstream | None = None
    ) -> Mapping[str, Any]:
        """Send any other request once and return its raw result."""
        return await self._exchange(method, dict(params or {}), caller, InFlightRequest(upstream))

    async def _exchange(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        request: InFlightRequest,
        *,
        first_session: bool = False,
        within_s: float | None = None,
    ) -> Mapping[str, Any]:
        """Send one request once, within its deadline. Every error says whether it may have been carried out."""
        limit_s = self.timeout_s if within_s is None else within_s
        with self._calls.of(caller.tenant) as calls:
            try:
                trial = calls.breaker.enter()
            except ServerUnavailableError:
                self._first.check()
                raise
            try:
                async with asyncio.timeout(limit_s) as request.deadline, calls.slots:
                    while True:
                        with suppress(NotSentError):
                            if self._credentials.each_caller and not first_session:
                                async with self._session_of(caller) as session:
                                    return await self._send(session, method, params, request, calls)
                            # If the first session is down or switched off, so is the server, for every tenant.
                            session = await self._first.session()
                            if first_session or self._pool.uses_first_session(caller):
                                return await self._send(session, method, params, request, calls)
                            async with self._pool.session(caller) as session:
                                return await self._send(session, method, params, request, calls)
            except TimeoutError:
                if request.sent:
                    calls.breaker.fail()
                    if calls.breaker.open:
                        self._first.check()
                raise timed_out(self.config.title, self.timeout_s, sent=request.sent) from None
            finally:
                # A trial without a result, for example a cancelled one, must not keep the breaker half open.
                if trial:
                    calls.breaker.leave()

    async def _send(
        self, session: Session, method: str, params: Mapping[str, Any], request: InFlightRequest, calls: TenantCalls
    ) -> Mapping[str, Any]:
        request.hide = partial(self._hide, session)
        try:
            result = await self._request(session, method, params, request)
        except NotSentError:
            # Nothing was written, so the next session may send it. This one is about to be closed.
            await session.closed.wait()
            raise
        except MCPError as error:
            raise self._failure(error, session, calls.breaker) from None
        calls.breaker.succeed()
        return cast("Mapping[str, Any]", self._hide(session, result))

    def _hide(self, session: Session, value: Any) -> Any:
        """Hide the secrets of the config and the tokens of a session in what the server sent."""
        return QuotedSecrets(None, session.tokens()).hide(self._secrets.hide(value))

    async def _request(
        self, session: Session, method: str, params: Mapping[str, Any], request: InFlightRequest
    ) -> dict[str, Any]:
        """Send a request, and record it."""
        attributes = {**self._network, "mcp.protocol.version": session.protocol.version}
        with mcp_operation(self._durations, method, attributes, kind="CLIENT") as operation:
            if method == "tools/call":
                describe_call(operation, str(params["name"]))
            try:
                result = await session.request(method, params, request)
            except asyncio.CancelledError:
                operation.fail("timeout" if request.deadline and request.deadline.expired() else "cancelled")
                raise
            if result.get("isError") is True:
                operation.fail("tool_error")
            return result

    def _failure(self, error: MCPError, session: Session, breaker: CircuitBreaker) -> CallError:
        if is_session_end(error):
            # A crash counts as one failure, however many calls of the tenant were under way.
            if breaker not in session.counted_by:
                breaker.fail()
            session.counted_by.add(breaker)
        elif error.code == NEEDS_LOGIN:
            self._first.check()
            hint = self._credentials.hint
            return SignInRequiredError(error.message, hint=hint, details={"server": self.key})
        elif error.code == NO_TOKEN:
            return ServerUnavailableError(error.message, hint="try again later")
        elif error.code == UNREACHABLE:
            breaker.fail()
            self._first.check()
        else:
            breaker.succeed()
        message, data = self._hide(session, error.message), self._hide(session, data_of(error))
        return to_call_error(self.config.title, rewrite(error, message, data), session)


def _network_of(config: ServerConfig) -> dict[str, str | int | bool]:
    """Return what spans say of the way to a server."""
    if config.transport == "stdio":
        return {"network.transport": "pipe"}
    over_http: dict[str, str | int | bool] = {"network.transport": "tcp", "network.protocol.name": "http"}
    try:
        url = urlsplit(config.url)
        return over_http | {"server.address": url.hostname or "", "server.port": url.port or _PORTS.get(url.scheme, 0)}
    except ValueError:  # an address that cannot be used
        return over_http
