"""One live server: its calls bounded in time and number, each of them sent exactly once, its failures in words."""

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
from toolscout.downstream.failures import is_gone, timed_out, translate
from toolscout.downstream.http_client import UNREACHABLE
from toolscout.downstream.in_flight import InFlightRequest, NotSentError
from toolscout.downstream.paging import ToolPages, read_all_pages
from toolscout.downstream.process import StderrBuffer
from toolscout.downstream.reaper import Reaper
from toolscout.downstream.reconnect import ReconnectingSession
from toolscout.downstream.session import Session
from toolscout.downstream.sessions import SessionPool, SessionTask
from toolscout.errors import CallError
from toolscout.models import Caller, Server, ServerStatus
from toolscout.ports import Upstream
from toolscout.settings import Settings

_STDERR_CHARS = 4_000
_LIST_AGAIN_S = 60.0
_DEFAULT_TIMEOUT_S = 30.0


class DownstreamServer:
    """A server as the rest of the house sees it (`ports.LiveServer`)."""

    def __init__(
        self, key: str, config: ServerConfig, settings: Settings, reaper: Reaper, *, changed: Callable[[], None]
    ) -> None:
        """Take the server's slug and config; `changed` is told of everything that may need indexing again."""
        self.key = key
        self.config = config
        self._settings = settings
        self._errors = StderrBuffer(settings.stderr_bytes)
        self._route = Endpoint(config=config, settings=settings, reaper=reaper, errors=self._errors, changed=changed)
        self._keeper = ReconnectingSession(config, settings, self._open, self._errors, changed)
        self._tenants = SessionPool(config, self._open)
        self._slots = asyncio.Semaphore(config.concurrency)
        self._breaker = CircuitBreaker(
            config.title, failures=settings.breaker_failures, pause_s=settings.breaker_pause_s
        )
        self._tools = 0
        self._headers: dict[str, dict[tuple[str, ...], str]] = {}
        self.ttl_s: float | None = None
        """When to list again; None where the last listing may be kept until the server says otherwise."""

    @property
    def server(self) -> Server:
        """The server as the catalogue knows it."""
        return replace(self.config.server, key=self.key)

    @property
    def tenants(self) -> tuple[str, ...] | Literal["all"] | None:
        """The tenants of the config."""
        return self.config.tenants

    @property
    def status(self) -> ServerStatus:
        """How the server is."""
        return ServerStatus(
            server=self.key,
            title=self.config.title,
            state=self._keeper.state,
            detail=self._keeper.detail,
            tools=self._tools,
            protocol=self._keeper.protocol,
            since=self._keeper.since,
            stderr=self._errors.text(_STDERR_CHARS),
            hint=self._keeper.hint,
        )

    def start(self) -> None:
        """Begin to connect, in the background and for as long as it takes."""
        if self.config.enabled:
            self._keeper.start(self._tenants.sweep())

    async def close(self) -> None:
        """End every session and process of this server."""
        await asyncio.gather(self._keeper.close(), self._tenants.close())

    def _open(self, config: ServerConfig | None = None) -> SessionTask:
        route = self._route if config in (None, self._route.config) else replace(self._route, config=config)
        return SessionTask(self.config.title, lambda: connect(route), self._settings.connect_timeout_s)

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the definitions of all tools, as the server sent them."""
        session = await self._keeper.session()
        tools = session.agreed.capabilities.get("tools")

        async def page(params: Mapping[str, Any]) -> Mapping[str, Any]:
            try:
                return await self._exchange("tools/list", params, Caller(), InFlightRequest(), home=True)
            except CallError as error:
                if tools is None and error.details.get("code") == METHOD_NOT_FOUND:
                    return {"tools": []}
                raise

        # A list that cannot be read now is asked for again before long.
        self.ttl_s = _LIST_AGAIN_S
        listing = await read_all_pages(page, self._settings)
        self._learn(listing, modern=session.agreed.modern)
        return listing.tools

    def _learn(self, listing: ToolPages, *, modern: bool) -> None:
        self._tools = len(listing.tools)
        self.ttl_s = listing.ttl_s
        if self._keeper.state == "ready":
            self._keeper.detail = listing.cut
        self._headers = {}
        if modern and self.config.transport != "stdio":
            for tool in listing.tools:
                schema = tool.get("inputSchema")
                if isinstance(schema, Mapping) and find_invalid_x_mcp_header(schema) is None:
                    found = x_mcp_header_map(schema)
                    if found:
                        self._headers[str(tool.get("name"))] = found

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        caller: Caller,
        upstream: Upstream | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Any]:
        """Call a tool once and return its raw result; `extra` are further parameters of the request."""
        params = {**(extra or {}), "name": name, "arguments": dict(arguments)}
        headers = mcp_param_headers(self._headers[name], arguments) if name in self._headers else {}
        return await self._exchange("tools/call", params, caller, InFlightRequest(upstream, headers))

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, caller: Caller, upstream: Upstream | None = None
    ) -> Mapping[str, Any]:
        """Send any other request once and return its raw result."""
        return await self._exchange(method, dict(params or {}), caller, InFlightRequest(upstream))

    async def _exchange(
        self, method: str, params: Mapping[str, Any], caller: Caller, call: InFlightRequest, *, home: bool = False
    ) -> Mapping[str, Any]:
        """Send one request once, within its deadline, and say of every failure whether it may have been carried out."""
        trial = self._breaker.enter()
        try:
            async with asyncio.timeout(self._timeout_s) as call.clock, self._slots:
                while True:
                    with suppress(NotSentError):
                        # A server that is down or switched off is so for every tenant.
                        session = await self._keeper.session()
                        if home or self._tenants.at_home(caller):
                            return await self._sent(session, method, params, call)
                        async with self._tenants.session(caller) as session:
                            return await self._sent(session, method, params, call)
        except TimeoutError:
            if call.sent:
                self._breaker.fail()
                if self._breaker.open:
                    self._keeper.suspect()
            raise timed_out(self.config.title, self._timeout_s, sent=call.sent) from None
        finally:
            # A trial that said nothing about the server, such as a cancelled one, must not hold the breaker half open.
            if trial:
                self._breaker.leave()

    async def _sent(
        self, session: Session, method: str, params: Mapping[str, Any], call: InFlightRequest
    ) -> Mapping[str, Any]:
        try:
            result = await session.request(method, params, call)
        except NotSentError:
            # Nothing was written, so the next session may have it; this one is about to be given up.
            await session.closed.wait()
            raise
        except MCPError as error:
            raise self._failed(error, session) from None
        self._breaker.succeed()
        return result

    @property
    def _timeout_s(self) -> float:
        own = self.config.timeout_s
        return own if own != _DEFAULT_TIMEOUT_S else self._settings.call_timeout_s

    def _failed(self, error: MCPError, session: Session) -> CallError:
        if is_gone(error, session):
            # One crash is one failure, however many calls were under way.
            if not session.blamed:
                self._breaker.fail()
            session.blamed = True
        elif error.code == UNREACHABLE:
            self._breaker.fail()
            self._keeper.suspect()
        else:
            self._breaker.succeed()
        return translate(self.config.title, error, session)
