"""The agent behind a request: what a server may tell it or ask of it while a call runs."""

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

_NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


class _Question(BaseModel):
    """A request to the client, as raw as it came."""

    method: str
    params: dict[str, Any] | None = None


class _Reply(BaseModel):
    """Whatever the client replied."""

    model_config = ConfigDict(extra="allow")


class RequestClient:
    """The client of one request, in either era."""

    def __init__(self, context: Context) -> None:
        """Stand for the client that sent this request."""
        self._context = context
        self.modern = is_modern(context)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Return what the client says it can do."""
        if self.modern:
            meta = (self._context.params or {}).get("_meta")
            raw = meta.get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, Mapping) else None
            return raw if isinstance(raw, Mapping) else {}
        declared = self._context.session.client_capabilities
        return declared.model_dump(by_alias=True, mode="json", exclude_none=True) if declared else {}

    @property
    def can_answer(self) -> bool:
        """Whether the client can be asked anything at all."""
        return any(name in self.capabilities for name in _NEEDS.values())

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass progress on, where the client asked for it."""
        await self._context.session.report_progress(progress, total, message)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask a client of the handshake era and return its reply as it came."""
        self.check_can(method)
        if self.modern or not self._context.session.can_send_request:
            raise refusal(method, "its connection takes no questions")
        question = cast("Any", _Question(method=method, params=dict(params) or None))
        origin = ServerMessageMetadata(related_request_id=self._context.request_id)
        try:
            reply = await self._context.session.send_request(question, _Reply, metadata=origin)
        except MCPError as error:
            raise CallError(
                f"the client answered {method} with an error: {error.message}",
                hint="the tool cannot go on without that answer",
                details={"code": error.code},
            ) from error
        return reply.model_dump(by_alias=True, mode="json")

    def check_can(self, method: str) -> None:
        """Refuse a question that the client did not say it can answer."""
        need = _NEEDS.get(method)
        if need is None:
            raise refusal(method, "the gateway does not pass it on")
        if need not in self.capabilities:
            raise refusal(method, f"it declares no {need} capability")


def is_modern(context: Context) -> bool:
    """Whether a request speaks the stateless protocol of 2026."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def refusal(method: str, reason: str) -> CallError:
    """Say that a server's question cannot reach the agent."""
    return CallError(
        f"the server asks for {method}, but this client cannot answer: {reason}",
        hint="use a client that supports it, or another tool",
    )
