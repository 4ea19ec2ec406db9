"""One open session: raw requests out, the server's notices and questions in. Results stay as the server sent them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
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

from toolscout.downstream.in_flight import CURRENT_REQUEST, InFlightRequest, NotSentError, SendTracker
from toolscout.downstream.negotiation import Era, NegotiatedProtocol, envelope, negotiate
from toolscout.errors import CallError

ASKED = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""What a server may ask of the agent while its call runs."""

_ASKING = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The requests during which a server may ask."""

_OURS = frozenset({PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY, "progressToken"})
_LISTEN_S = 1.0
_CHANGED = "/list_changed"


class Session:
    """What is open between us and a server for one tenant."""

    def __init__(self, dispatcher: JSONRPCDispatcher, changed: Callable[[], None]) -> None:
        """Speak through a dispatcher; `changed` is told, cheaply and often, that a list is not what it was."""
        self._dispatcher = dispatcher
        self._changed = changed
        self._calls: set[InFlightRequest] = set()
        self._numbers = count(1)
        self.agreed = NegotiatedProtocol(version="")
        self.listening = asyncio.Event()
        self.closed = asyncio.Event()
        self.blamed = False
        """Whether its end was counted against the server."""
        self.reason = ""

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return bool(self._calls)

    def lose(self, reason: str) -> None:
        """Note that nothing more can come of this session."""
        self.reason = self.reason or reason
        self.closed.set()

    async def request(self, method: str, params: Mapping[str, Any], call: InFlightRequest) -> dict[str, Any]:
        """Send one request once; the deadline is the caller's, and leaving early tells the server to stop.

        NotSentError says that the session has ended and nothing of the request was written.
        """
        options: CallOptions = {}
        if call.upstream is not None:
            options["on_progress"] = call.progress
        stamped = self._stamped(method, params, call, options)
        try:
            # Over HTTP, what cannot be written would end the whole session and not this call alone.
            pydantic_core.to_json(stamped)
        except ValueError as error:
            raise CallError("the arguments cannot be written as JSON; nothing was sent", hint="correct them") from error
        if method in _ASKING:
            self._calls.add(call)
        token = CURRENT_REQUEST.set(call)
        try:
            return await self._dispatcher.send_raw_request(method, stamped, options)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED and not call.sent:
                raise NotSentError from None
            raise
        finally:
            CURRENT_REQUEST.reset(token)
            self._calls.discard(call)

    def _stamped(
        self, method: str, params: Mapping[str, Any], call: InFlightRequest, options: CallOptions
    ) -> dict[str, Any]:
        """Add what the version asks for; the caller's own envelope is not handed on, only what its client can do."""
        meta = {key: value for key, value in (params.get("_meta") or {}).items() if key not in _OURS}
        headers = {**call.headers, MCP_PROTOCOL_VERSION_HEADER: self.agreed.version}
        if self.agreed.modern:
            meta |= envelope(self.agreed.version, call.upstream.capabilities if call.upstream else {})
            headers[MCP_METHOD_HEADER] = method
            name = params.get(NAME_BEARING_METHODS.get(method, ""))
            if isinstance(name, str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        options["headers"] = headers
        rest = {key: value for key, value in params.items() if key != "_meta"}
        return {**rest, "_meta": meta} if meta else rest

    async def pulse(self) -> None:
        """Ask for a sign of life; an error of the server's own is one too."""
        await self.request("server/discover" if self.agreed.modern else "ping", {}, InFlightRequest())

    async def listen(self) -> None:
        """Keep a subscription to list changes open, where the version needs one; it ends with the session."""
        kinds = _announced(self.agreed.capabilities)
        if not self.agreed.modern or not kinds:
            self.listening.set()
            return
        wanted = {"notifications": {f"{kind}ListChanged": True for kind in kinds}}
        pause_s = 1.0
        while not self.closed.is_set():
            options: CallOptions = {"request_id": f"listen-{next(self._numbers)}"}
            stamped = self._stamped("subscriptions/listen", wanted, InFlightRequest(), options)
            try:
                await self._dispatcher.send_raw_request("subscriptions/listen", stamped, options)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND:
                    self.listening.set()
                    return
            if self.closed.is_set():
                return
            # A subscription that ended may have missed a change.
            self._changed()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 60.0)

    def on_notify(self, method: str, _params: Mapping[str, Any] | None) -> bool:
        """Take every notification where it arrives, so that a flood of them costs no task each."""
        if method.startswith("notifications/") and method.endswith(_CHANGED):
            self._changed()
        elif method == "notifications/subscriptions/acknowledged":
            self.listening.set()
        return True

    async def on_request(
        self, _context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Answer the server: a ping ourselves, a question by the agent whose call is the only one running."""
        if method == "ping":
            return {}
        if method not in ASKED:
            raise MCPError(METHOD_NOT_FOUND, f"toolscout does not answer {method}")
        calls = list(self._calls)
        # Nothing in the request says whose call it belongs to: with several running, asking any of them could show
        # one caller's question to another.
        if len(calls) != 1 or calls[0].upstream is None:
            raise MCPError(INVALID_REQUEST, f"{method} can be passed on only while exactly one agent's call is running")
        call = calls[0]
        try:
            with call.paused():
                assert call.upstream is not None  # noqa: S101 - said above
                return dict(await call.upstream.ask(method, params or {}))
        except CallError as error:
            raise MCPError(INVALID_REQUEST, error.message) from None


def _announced(capabilities: Mapping[str, Any]) -> list[str]:
    """Return the kinds of lists whose changes the server says it announces."""
    declared = {kind: capabilities.get(kind) for kind in ("tools", "prompts", "resources")}
    return [kind for kind, value in declared.items() if isinstance(value, Mapping) and value.get("listChanged") is True]


async def _ignore(context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None) -> None:
    """Do nothing: every notification was taken where it arrived."""


@asynccontextmanager
async def open_session(
    transport: AbstractAsyncContextManager[Any], era: Era, changed: Callable[[], None]
) -> AsyncIterator[Session]:
    """Open a session over a transport and agree on a version; leaving closes both."""
    async with transport as (read, write):
        dispatcher: JSONRPCDispatcher = JSONRPCDispatcher(read, SendTracker(write))
        session = Session(dispatcher, changed)

        async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            try:
                await dispatcher.run(session.on_request, _ignore, session.on_notify, task_status=task_status)
            finally:
                session.lose("the connection was closed")

        async with anyio.create_task_group() as tasks:
            await tasks.start(run)
            try:
                session.agreed = await negotiate(dispatcher, era)
                tasks.start_soon(session.listen)
                # Heard before listed: what changes in between is not missed.
                with anyio.move_on_after(_LISTEN_S):
                    await session.listening.wait()
                yield session
            finally:
                tasks.cancel_scope.cancel()
