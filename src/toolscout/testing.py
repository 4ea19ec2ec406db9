"""A live server in memory, for tests of programs that embed Toolscout and as an example of a custom server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Literal

from toolscout.errors import CallError, ServerUnavailableError
from toolscout.models import Caller, Server, ServerStatus
from toolscout.ports import Upstream
from toolscout.tool_keys import server_slug

__all__ = ["FakeCall", "FakeResult", "FakeServer"]

FakeResult = Mapping[str, Any] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeCall:
    """One call that reached a fake server."""

    name: str
    arguments: Mapping[str, Any]
    caller: Caller


class FakeServer:
    """A live server in memory that lists fixed rows. Pass it to `Scout.open(servers=[...])`.

    `answer` gets each call and returns an MCP result, or the text of one. Without it, every call answers "done". With
    `tenants`, the server is indexed for these tenants, or for `"all"`, instead of for the local one.
    """

    def __init__(
        self,
        title: str,
        rows: Iterable[Mapping[str, Any]] = (),
        *,
        answer: Callable[[FakeCall], FakeResult | Awaitable[FakeResult]] | None = None,
        tenants: tuple[str, ...] | Literal["all"] | None = None,
        trusted: bool = True,
    ) -> None:
        self.server = Server(key=server_slug(title), title=title, trusted=trusted)
        self.tenants = tenants
        self.calls: list[FakeCall] = []
        """The calls that reached the server, in order."""
        self.times_listed = 0
        """How often its tools were listed."""
        self._rows = list(rows)
        self._answer = answer
        self._failure = ""
        self._changed: Callable[[], None] | None = None

    @property
    def status(self) -> ServerStatus:
        """Return whether it is up."""
        state: Literal["ready", "failed"] = "failed" if self._failure else "ready"
        return ServerStatus(
            server=self.server.key, title=self.server.title, state=state, detail=self._failure, tools=len(self._rows)
        )

    def set_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace its tools, and report that they changed."""
        self._rows = list(rows)
        self._report()

    def go_down(self, reason: str = "it was stopped") -> None:
        """Fail every call and every list from now on."""
        self._failure = reason
        self._report()

    def come_back(self) -> None:
        """Answer again."""
        self._failure = ""
        self._report()

    def start(self, changed: Callable[[], None]) -> None:
        """Report to `changed` from now on, first that it is connected."""
        self._changed = changed
        changed()

    async def close(self) -> None:
        """Report nothing more."""
        self._changed = None

    async def list_tools(self) -> list[Mapping[str, Any]]:
        """Return the rows."""
        self._check()
        self.times_listed += 1
        return list(self._rows)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        caller: Caller,
        upstream: Upstream | None = None,  # noqa: ARG002 - it asks nothing of the agent
        extra: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Mapping[str, Any]:
        """Record the call and return its answer."""
        self._check()
        call = FakeCall(name=name, arguments=arguments, caller=caller)
        self.calls.append(call)
        result = self._answer(call) if self._answer else "done"
        if isawaitable(result):
            result = await result
        return {"content": [{"type": "text", "text": result}]} if isinstance(result, str) else result

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,  # noqa: ARG002 - it has nothing but tools
        *,
        caller: Caller,  # noqa: ARG002
        upstream: Upstream | None = None,  # noqa: ARG002
    ) -> Mapping[str, Any]:
        """Refuse: it has neither resources nor prompts."""
        raise CallError(f"{self.server.title} does not know {method}", details={"code": -32601, "data": None})

    def _report(self) -> None:
        if self._changed is not None:
            self._changed()

    def _check(self) -> None:
        if self._failure:
            raise ServerUnavailableError(f"{self.server.title} is down: {self._failure}", hint="wait until it is back")
