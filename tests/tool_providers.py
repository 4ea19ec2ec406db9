"""Providers of tools for the registry's tests: good ones of every kind, and bad ones of every kind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any

from toolscout import ToolMetadata, ToolNotFoundError

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Folder:
    """A synchronous provider of tools with one parameter. `calls` records every call of its methods."""

    def __init__(self, tools: Mapping[str, str], *, name: str = "folder", says: str = "") -> None:
        self.tools = dict(tools)
        self.name = name
        self.says = says or name
        self.calls: list[tuple[str, str]] = []

    def list_tool_metadata(self) -> Any:
        self.calls.append(("list", ""))
        return [ToolMetadata(name=name, description=text) for name, text in self.tools.items()]

    def get_tool(self, name: str) -> Any:
        self.calls.append(("get", name))
        return {"name": name, "description": self.tools[name], "inputSchema": CITY} if name in self.tools else None

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        self.calls.append(("call", name))
        if name not in self.tools:
            raise ToolNotFoundError(f"no tool is named {name}")
        return f"{self.says}: {name} in {arguments['city']}"


class Api:
    """An asynchronous provider with the tools of another one."""

    def __init__(self, inner: Folder) -> None:
        self.inner = inner
        self.name = inner.name

    async def list_tool_metadata(self) -> Any:
        return self.inner.list_tool_metadata()

    async def get_tool(self, name: str) -> Any:
        return self.inner.get_tool(name)

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self.inner.call_tool(name, arguments)


class Generator(Folder):
    """Lists by a generator, as mappings."""

    def list_tool_metadata(self) -> Any:
        for name, text in self.tools.items():
            yield {"name": name, "description": text, "keywords": "generated"}


class AsyncGenerator(Folder):
    """Lists by an asynchronous generator."""

    async def list_tool_metadata(self) -> AsyncIterator[Any]:
        for name, text in self.tools.items():
            yield {"name": name, "description": text}


class Failing(Folder):
    """Fails in a given way at one stage: `list`, `get` or `call`."""

    def __init__(self, tools: Mapping[str, str], *, stage: str, answer: Any) -> None:
        super().__init__(tools, name="failing")
        self.stage = stage
        self.answer = answer

    def _maybe(self, stage: str, good: Any) -> Any:
        if stage != self.stage:
            return good()
        return self.answer() if callable(self.answer) else self.answer

    def list_tool_metadata(self) -> Any:
        return self._maybe("list", super().list_tool_metadata)

    def get_tool(self, name: str) -> Any:
        return self._maybe("get", lambda: Folder.get_tool(self, name))

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return self._maybe("call", lambda: Folder.call_tool(self, name, arguments))


def raises() -> Any:
    """Raise an error with a secret in its message."""
    raise RuntimeError("secret detail")


def leaves() -> Any:
    """Try to end the process."""
    raise SystemExit(3)


def endless() -> Any:
    """List for ever, with names."""
    number = 0
    while True:
        number += 1
        yield {"name": f"endless_{number}"}


class Stuck:
    """Hangs until the test is over, in a blocking call or in a coroutine that ignores its cancellation."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def blocks(self) -> Any:
        self.over.wait(60)
        return []

    async def waits(self) -> Any:
        while not self.over.is_set():
            try:
                await asyncio.get_running_loop().run_in_executor(None, self.over.wait, 0.01)
            except asyncio.CancelledError:
                continue
        return []
