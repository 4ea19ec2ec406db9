"""One server: its calls are bounded in time and number, each is sent exactly once, and its failures become errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp_types import METHOD_NOT_FOUND

from toolscout.config import ServerConfig
from toolscout.downstream.circuit_breaker import CircuitBreaker
from toolscout.downstream.connect import Endpoint, connect
from toolscout.downstream.failures import is_session_end, timed_out, to_call_error
from toolscout.downstream.http_client import UNREACHABLE
from toolscout.downstream.in_flight import InFlightRequest, NotSentError, call_timeout_s
from toolscout.downstream.paging import ToolPages, read_all_pages
from toolscout.downstream.process import StderrBuffer
from toolscout.downstream.reaper import Reaper
from toolscout.downstream.reconnect import ReconnectingSession
from toolscout.downstream.session import Session
from toolscout.downstream.sessions import SessionPool, SessionTask
from toolscout.errors import CallError, ServerUnavailableError
from toolscout.models import Caller, Server, ServerStatus
from toolscout.ports import Upstream
from toolscout.settings import Settings

_STDERR_CHARS = 4_000
_RETRY_LIST_S = 60.0


class DownstreamServer:
    """A server that is reached over MCP (`ports.LiveServer`)."""

    def __init__(
        self, key: str, config: ServerConfig, settings: Settings, reaper: Reaper, *, on_change: Callable[[], None]
    ) -> None:
        """Take the server's slug and config. `on_change` is called when its tools may have to be indexed again."""
        self.key = key
        self.config = config
        self._settings = settings
        self._timeout_s = call_timeout_s(config, settings)
        self._errors = StderrBuffer(settings.stderr_bytes)
        self._endpoint = Endpoint(
            config=config, settings=settings, reaper=reaper, errors=self._errors, on_change=on_change
        )
        self._first = ReconnectingSession(
            config, settings, self._open, self._errors, on_change, on_alive=lambda: self._breaker.note_alive()
        )
        self._pool = SessionPool(config, self._open)
        self._slots = asyncio.Semaphore(config.concurrency)
        self._breaker = CircuitBreaker(
            config.title, failures=settings.breaker_failures, pause_s=settings.breaker_pause_s
        )
        self._tool_count = 0
        self._header_params: dict[str, dict[tuple[str, ...], str]] = {}
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
            tools=self._tool_count,
            protocol=self._first.protocol,
            since=self._first.since,
            stderr=self._errors.text(_STDERR_CHARS),
            hint=self._first.hint,
        )

    def start(self) -> None:
        """Start to connect in the background and keep trying."""
        if self.config.enabled:
            self._first.start(self._pool.close_idle())

    async def close(self) -> None:
        """End every session and process of this server."""
        await asyncio.gather(self._first.close(), self._pool.close())

    def _open(self, config: ServerConfig | None = None) -> SessionTask:
        endpoint = self._endpoint
        if config not in (None, endpoint.config):
            endpoint = replace(endpoint, config=config)
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
        self._remember(pages, modern=session.protocol.modern)
        return pages.tools

    def _remember(self, pages: ToolPages, *, modern: bool) -> None:
        self._tool_count = len(pages.tools)
        self.ttl_s = pages.ttl_s
        if self._first.state == "ready":
            self._first.detail = pages.truncated
        self._header_params = {}
        if modern and self.config.transport != "stdio":
            for tool in pages.with_headers:
                schema = tool.get("inputSchema")
                if isinstance(schema, Mapping) and find_invalid_x_mcp_header(schema) is None:
                    params = x_mcp_header_map(schema)
                    if params:
                        self._header_params[str(tool.get("name"))] = params

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
        params = {**(extra or {}), "name": name, "arguments": dict(arguments)}
        headers = mcp_param_headers(self._header_params[name], arguments) if name in self._header_params else {}
        return await self._exchange("tools/call", params, caller, InFlightRequest(upstream, headers))

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
    ) -> Mapping[str, Any]:
        """Send one request once, within its deadline. Every error says whether it may have been carried out."""
        try:
            trial = self._breaker.enter()
        except ServerUnavailableError:
            self._first.check()
            raise
        try:
            async with asyncio.timeout(self._timeout_s) as request.deadline, self._slots:
                while True:
                    with suppress(NotSentError):
                        # If the first session is down or switched off, so is the server, for every tenant.
                        session = await self._first.session()
                        if first_session or self._pool.uses_first_session(caller):
                            return await self._send(session, method, params, request)
                        async with self._pool.session(caller) as session:
                            return await self._send(session, method, params, request)
        except TimeoutError:
            if request.sent:
                self._breaker.fail()
                if self._breaker.open:
                    self._first.check()
            raise timed_out(self.config.title, self._timeout_s, sent=request.sent) from None
        finally:
            # A trial without a result, for example a cancelled one, must not keep the breaker half open.
            if trial:
                self._breaker.leave()

    async def _send(
        self, session: Session, method: str, params: Mapping[str, Any], request: InFlightRequest
    ) -> Mapping[str, Any]:
        try:
            result = await session.request(method, params, request)
        except NotSentError:
            # Nothing was written, so the next session may send it. This one is about to be closed.
            await session.closed.wait()
            raise
        except MCPError as error:
            raise self._failure(error, session) from None
        self._breaker.succeed()
        return result

    def _failure(self, error: MCPError, session: Session) -> CallError:
        if is_session_end(error, session):
            # A crash counts as one failure, however many calls were under way.
            if not session.counted:
                self._breaker.fail()
            session.counted = True
        elif error.code == UNREACHABLE:
            self._breaker.fail()
            self._first.check()
        else:
            self._breaker.succeed()
        return to_call_error(self.config.title, error, session)
