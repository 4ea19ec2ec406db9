"""The client that sent a request. During a call, a downstream server may send it progress and questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import CLIENT_CAPABILITIES_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ConfigDict

from toolscout.errors import CallError

Context = ServerRequestContext[Any, Any]

_CAPABILITIES = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


class _Question(BaseModel):
    """A server's request to the client, forwarded unchanged."""

    method: str
    params: dict[str, Any] | None = None


class _Reply(BaseModel):
    """The client's reply, forwarded unchanged."""

    model_config = ConfigDict(extra="allow")


class RequestClient:
    """The client of one request, in either protocol era."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.modern = is_modern(context)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Return the capabilities that the client declares."""
        if self.modern:
            meta = (self._context.params or {}).get("_meta")
            raw = meta.get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, Mapping) else None
            return raw if isinstance(raw, Mapping) else {}
        declared = self._context.session.client_capabilities
        return declared.model_dump(by_alias=True, mode="json", exclude_none=True) if declared else {}

    @property
    def can_answer(self) -> bool:
        """Whether the client can answer at least one kind of question."""
        return any(name in self.capabilities for name in _CAPABILITIES.values())

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Forward progress, if the client asked for it."""
        await self._context.session.report_progress(progress, total, message)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a server's question to a handshake client and return its reply unchanged."""
        self.check_can_answer(method)
        if self.modern or not self._context.session.can_send_request:
            raise _cannot_answer(method, "its connection does not accept questions")
        question = cast("Any", _Question(method=method, params=dict(params) or None))
        origin = ServerMessageMetadata(related_request_id=self._context.request_id)
        try:
            reply = await self._context.session.send_request(question, _Reply, metadata=origin)
        except MCPError as error:
            raise CallError(
                f"the client answered {method} with an error: {error.message}",
                hint="the tool needs that answer: call it again",
                details={"code": error.code},
            ) from error
        return reply.model_dump(by_alias=True, mode="json")

    def check_can_answer(self, method: str) -> None:
        """Raise CallError unless the client declares the capability to answer such a question."""
        capability = _CAPABILITIES.get(method)
        if capability is None:
            raise _cannot_answer(method, "the gateway does not forward such questions")
        if capability not in self.capabilities:
            raise _cannot_answer(method, f"it declares no {capability} capability")


def is_modern(context: Context) -> bool:
    """Tell whether a request uses the stateless protocol of 2026."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _cannot_answer(method: str, reason: str) -> CallError:
    """Build the error for a server's question that the client cannot answer."""
    return CallError(
        f"the server asks for {method}, but this client cannot answer: {reason}",
        hint="use a client that supports it, or another tool",
    )
