"""One open session: it sends raw requests and answers the server's own. Results stay as the server sent them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Any

import anyio
import anyio.abc
import pydantic_core
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_META_KEY,
)

from toolscout.downstream.circuit_breaker import CircuitBreaker
from toolscout.downstream.in_flight import (
    CURRENT_REQUEST,
    MAX_QUESTIONS,
    Attempt,
    InFlightRequest,
    NotSentError,
    ReceiveTracker,
    SendTracker,
)
from toolscout.downstream.negotiation import Era, NegotiatedProtocol, envelope, negotiate
from toolscout.errors import CallError
from toolscout.telemetry.spans import trace_headers

_QUESTIONS = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""The requests that a server may send to the agent during a call."""

_INTERACTIVE = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The requests during which a server may send such questions."""

_OWN_META = frozenset({PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY, "progressToken"})
_LISTEN_S = 1.0
_LIST_CHANGED = "/list_changed"


class Session:
    """An open connection to a server, for one tenant or for all."""

    def __init__(self, dispatcher: JSONRPCDispatcher, on_change: Callable[[], None]) -> None:
        """Take the SDK's dispatcher. `on_change` is called for every change of a list, which can be very often."""
        self._dispatcher = dispatcher
        self._on_change = on_change
        self._interactive: set[InFlightRequest] = set()
        self._numbers = count(1)
        self.protocol = NegotiatedProtocol(version="")
        self.listening = asyncio.Event()
        self.closed = asyncio.Event()
        self.counted_by: set[CircuitBreaker] = set()
        """The circuit breakers that have counted the end of this session."""
        self.reason = ""
        self.tokens: Callable[[], Iterable[str]] = lambda: ()
        """Returns the tokens that its requests are sent with, which the server may quote."""

    def lose(self, reason: str) -> None:
        """Mark the session as ended."""
        self.reason = self.reason or reason
        self.closed.set()

    async def request(self, method: str, params: Mapping[str, Any], request: InFlightRequest) -> dict[str, Any]:
        """Send one request once. The caller sets the deadline, and cancelling tells the server to stop.

        NotSentError means that the session has ended and nothing of the request was written.
        """
        options: CallOptions = {}
        if request.upstream is not None:
            options["on_progress"] = request.progress
        payload = self._with_envelope(method, params, request, options)
        try:
            # Over HTTP, arguments that cannot be written as JSON would end the whole session and not this call alone.
            pydantic_core.to_json(payload)
        except ValueError as error:
            raise CallError("the arguments cannot be written as JSON; nothing was sent", hint="correct them") from error
        if method in _INTERACTIVE:
            self._interactive.add(request)
        request.attempt = Attempt()
        token = CURRENT_REQUEST.set(request)
        try:
            answer = await self._dispatcher.send_raw_request(method, payload, options)
            result = dict(answer)
            answer.clear()  # the SDK keeps the last message until the next one arrives, however large it is
            return result
        except MCPError as error:
            if error.code == CONNECTION_CLOSED and not request.sent:
                raise NotSentError from None
            raise
        finally:
            CURRENT_REQUEST.reset(token)
            request.attempt.end()
            self._interactive.discard(request)

    def _with_envelope(
        self, method: str, params: Mapping[str, Any], request: InFlightRequest, options: CallOptions
    ) -> dict[str, Any]:
        """Add the envelope and headers of the protocol. The caller's own envelope is not passed on."""
        meta = {key: value for key, value in (params.get("_meta") or {}).items() if key not in _OWN_META}
        headers = {**request.headers, **trace_headers(), MCP_PROTOCOL_VERSION_HEADER: self.protocol.version}
        if self.protocol.modern:
            meta |= envelope(self.protocol.version, request.upstream.capabilities if request.upstream else {})
            headers[MCP_METHOD_HEADER] = method
            name = params.get(NAME_BEARING_METHODS.get(method, ""))
            if isinstance(name, str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        options["headers"] = headers
        rest = {key: value for key, value in params.items() if key != "_meta"}
        return {**rest, "_meta": meta} if meta else rest

    async def ping(self) -> None:
        """Send a ping. An error that the server returns is an answer too."""
        await self.request("server/discover" if self.protocol.modern else "ping", {}, InFlightRequest())

    async def listen(self) -> None:
        """Subscribe to list changes if the protocol needs it, and subscribe again until the session ends."""
        kinds = _announced(self.protocol.capabilities)
        if not self.protocol.modern or not kinds:
            self.listening.set()
            return
        filters = {"notifications": {f"{kind}ListChanged": True for kind in kinds}}
        pause_s = 1.0
        while not self.closed.is_set():
            options: CallOptions = {"request_id": f"listen-{next(self._numbers)}"}
            payload = self._with_envelope("subscriptions/listen", filters, InFlightRequest(), options)
            try:
                await self._dispatcher.send_raw_request("subscriptions/listen", payload, options)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND:
                    self.listening.set()
                    return
            if self.closed.is_set():
                return
            # Changes may have been missed since the subscription ended.
            self._on_change()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 60.0)

    def on_notify(self, method: str, _params: Mapping[str, Any] | None) -> bool:
        """Handle a notification directly, so that a flood of them does not start a task for each."""
        if method.startswith("notifications/") and method.endswith(_LIST_CHANGED):
            self._on_change()
        elif method == "notifications/subscriptions/acknowledged":
            self.listening.set()
        return True

    async def on_request(
        self, _context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Answer a request of the server: a ping ourselves, a question by the agent if exactly one call is running."""
        if method == "ping":
            return {}
        if method not in _QUESTIONS:
            raise MCPError(METHOD_NOT_FOUND, f"toolscout does not answer {method}")
        requests = list(self._interactive)
        # The server does not say to which call its question belongs. With several calls running, asking any of them
        # could show one caller's question to another.
        if len(requests) != 1 or requests[0].upstream is None:
            raise MCPError(
                INVALID_REQUEST, f"{method} can be passed on only while exactly one call of an agent is running"
            )
        request = requests[0]
        if not request.take_question():
            raise MCPError(INVALID_REQUEST, f"a call may ask at most {MAX_QUESTIONS} questions")
        try:
            with request.paused():
                assert request.upstream is not None  # noqa: S101 - checked above
                return dict(await request.upstream.ask(method, request.hide(params or {})))
        except CallError as error:
            raise MCPError(INVALID_REQUEST, error.message) from None


def _announced(capabilities: Mapping[str, Any]) -> list[str]:
    """Return the kinds of lists whose changes the server announces."""
    declared = {kind: capabilities.get(kind) for kind in ("tools", "prompts", "resources")}
    return [kind for kind, value in declared.items() if isinstance(value, Mapping) and value.get("listChanged") is True]


async def _ignore(context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None) -> None:
    """Do nothing: `Session.on_notify` has handled the notification."""


@asynccontextmanager
async def open_session(
    transport: AbstractAsyncContextManager[Any], era: Era, on_change: Callable[[], None]
) -> AsyncIterator[Session]:
    """Open a session over a transport and negotiate the protocol. On exit both are closed."""
    async with transport as (read, write):
        dispatcher: JSONRPCDispatcher = JSONRPCDispatcher(ReceiveTracker(read), SendTracker(write))
        session = Session(dispatcher, on_change)

        async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            try:
                await dispatcher.run(session.on_request, _ignore, session.on_notify, task_status=task_status)
            finally:
                session.lose("the connection was closed")

        async with anyio.create_task_group() as tasks:
            await tasks.start(run)
            try:
                session.protocol = await negotiate(dispatcher, era)
                tasks.start_soon(session.listen)
                # Subscribe before the tools are listed, so that no change in between is missed.
                with anyio.move_on_after(_LISTEN_S):
                    await session.listening.wait()
                yield session
            finally:
                tasks.cancel_scope.cancel()
