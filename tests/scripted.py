"""A server in this process that is scripted by the test: the test defines its tools and their answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolscout.errors import CallError, ServerUnavailableError
from toolscout.models import Caller, Server, ServerStatus
from toolscout.ports import Upstream


@dataclass
class Call:
    """One call that reached the scripted server."""

    name: str
    arguments: Mapping[str, Any]
    upstream: Upstream | None
    extra: Mapping[str, Any]


Answer = Callable[[Call], Awaitable[Mapping[str, Any]]]


def text(words: str, **more: Any) -> dict[str, Any]:
    """Write the simplest result."""
    return {"content": [{"type": "text", "text": words}], **more}


@dataclass
class Scripted:
    """A server whose tools are a definition and an answer each. It records every call."""

    key: str
    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: dict[str, Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    state: str = "ready"
    tenants: tuple[str, ...] | None = None

    report_change: Callable[[], None] = lambda: None

    def start(self, changed: Callable[[], None]) -> None:
        """Report that it is connected. `report_change` reports anything that happens later."""
        self.report_change = changed
        changed()

    async def close(self) -> None:
        """Close nothing."""

    def tool(self, name: str, answer: Answer | Mapping[str, Any] | None = None, **definition: Any) -> None:
        """Add a tool."""
        self.definitions[name] = {"name": name, "inputSchema": {"type": "object"}, **definition}

        async def fixed_answer(_call: Call) -> Mapping[str, Any]:
            return answer if isinstance(answer, Mapping) else text("done")

        self.answers[name] = answer if callable(answer) else fixed_answer

    @property
    def server(self) -> Server:
        return Server(key=self.key, title=self.key)

    @property
    def status(self) -> ServerStatus:
        return ServerStatus(server=self.key, title=self.key, state=self.state)  # type: ignore[arg-type]

    async def list_tools(self) -> list[dict[str, Any]]:
        if self.state == "failed":
            raise ServerUnavailableError(f"{self.key} is down", hint="wait")
        return list(self.definitions.values())

    async def call_tool(self, name: str, arguments: Mapping[str, Any], *, caller: Caller, upstream=None, extra=None):
        if self.state != "ready":
            raise ServerUnavailableError(f"{self.key} is down", hint="wait")
        call = Call(name, arguments, upstream, extra or {})
        self.calls.append(call)
        return await self.answers[name](call)

    async def request(self, method: str, params=None, *, caller: Caller, upstream=None):
        if self.state != "ready":
            raise ServerUnavailableError(f"{self.key} is down", hint="wait")
        if method not in self.requests:
            raise CallError("Method not found", details={"code": -32601, "data": None})
        answer = self.requests[method]
        return answer(params or {}) if callable(answer) else answer
