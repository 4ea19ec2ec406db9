"""The tools for one turn of a chat: what was chosen, why, and how to call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from toolscout.chat import anthropic_tool, openai_tool, read_tool_call
from toolscout.models.tools import CallResult, Tool

Origin = Literal["semantic", "core", "fallback", "all"]
"""Why a tool is there: found, always included, put in because searching failed, or because choosing is switched off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """What one turn of a chat asks for: `Scout.discover_tools` says what each field means."""

    query: str
    limit: int = 8
    similarity_threshold: float | None = None
    include_core_tools: bool = True
    servers: tuple[str, ...] | None = None
    messages: Iterable[Any] = ()
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredTool:
    """One tool of a turn: its cosine with what was asked (0 where nothing was compared), and its calibrated score."""

    tool: Tool
    similarity: float = 0.0
    source: Origin = "semantic"
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery(Sequence[DiscoveredTool]):
    """A sequence of DiscoveredTool, best first, core tools last, ready for the call to a model."""

    tools: tuple[DiscoveredTool, ...]
    total_searched: int
    search_duration_ms: float
    embedding_generated: bool
    tokens: int
    tokens_saved: int
    names: Mapping[str, str]
    """The name that a model sees -> the key of the tool."""
    degraded: str | None = None
    send: Callable[[str, Mapping[str, Any], str | None], Awaitable[CallResult]] = field(repr=False, compare=False)
    """How a call goes out: the name that the model used, the arguments, the version that it saw."""

    @overload
    def __getitem__(self, index: int) -> DiscoveredTool: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[DiscoveredTool, ...]: ...
    def __getitem__(self, index: int | slice) -> DiscoveredTool | tuple[DiscoveredTool, ...]:
        """Return the tool, or tools, at that place."""
        return self.tools[index]

    def __len__(self) -> int:
        """Count the tools."""
        return len(self.tools)

    def __iter__(self) -> Iterator[DiscoveredTool]:
        """Walk the tools, best first."""
        return iter(self.tools)

    def openai_tools(self, api: Literal["chat", "responses"] = "chat") -> list[dict[str, Any]]:
        """Return the definitions for OpenAI's Chat Completions, or for its Responses."""
        return [openai_tool(name, tool, api) for name, tool in self._named()]

    def anthropic_tools(self) -> list[dict[str, Any]]:
        """Return the definitions for Anthropic's Messages."""
        return [anthropic_tool(name, tool) for name, tool in self._named()]

    async def call(self, tool_call: Any) -> CallResult:
        """Run what the model answered, once: a tool call of either API, as an object of its SDK or as plain JSON."""
        name, arguments = read_tool_call(tool_call)
        shown = {item.tool.key: item.tool.version for item in self.tools}
        return await self.send(name, arguments, shown.get(self.names.get(name, "")))

    def _named(self) -> list[tuple[str, Tool]]:
        tools = {item.tool.key: item.tool for item in self.tools}
        return [(name, tools[key]) for name, key in self.names.items()]
