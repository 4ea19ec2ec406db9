"""The tools of one chat turn, in the forms of both chat APIs, with a method that runs a model's tool call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, overload

from toolscout.chat.definitions import anthropic_tool, openai_tool
from toolscout.chat.names import model_names
from toolscout.chat.schemas import own_arguments
from toolscout.chat.tool_calls import read_tool_call
from toolscout.models import CallResult, ChatSelection, DiscoveredTool, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery(ChatSelection, Sequence[DiscoveredTool]):
    """The tools of a chat turn as a sequence of DiscoveredTool: best first, core tools last."""

    names: Mapping[str, str]
    """Maps the name that a model sees to the key of the tool."""
    find_tool: Callable[[str], Awaitable[Tool | None]] = field(repr=False, compare=False)
    """Finds the tool of a name that a model was shown in an earlier turn."""
    call_tool: Callable[..., Awaitable[CallResult]] = field(repr=False, compare=False)
    """Runs a call: `Scout.call_tool`, bound to the caller."""

    @classmethod
    def of(
        cls,
        selection: ChatSelection,
        *,
        find_tool: Callable[[str], Awaitable[Tool | None]],
        call_tool: Callable[..., Awaitable[CallResult]],
    ) -> Discovery:
        """Make a Discovery from a selection."""
        values = {item.name: getattr(selection, item.name) for item in fields(ChatSelection)}
        names = model_names(item.tool.key for item in selection.tools)
        return cls(**values, names=names, find_tool=find_tool, call_tool=call_tool)

    @overload
    def __getitem__(self, index: int) -> DiscoveredTool: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[DiscoveredTool, ...]: ...
    def __getitem__(self, index: int | slice) -> DiscoveredTool | tuple[DiscoveredTool, ...]:
        """Return the tool or tools at an index."""
        return self.tools[index]

    def __len__(self) -> int:
        """Count the tools."""
        return len(self.tools)

    def __iter__(self) -> Iterator[DiscoveredTool]:
        """Iterate over the tools, best first."""
        return iter(self.tools)

    def openai_tools(self, api: Literal["chat", "responses"] = "chat") -> list[dict[str, Any]]:
        """Return the definitions for OpenAI's Chat Completions API, or for its Responses API."""
        tools = self._by_key()
        return [openai_tool(name, tools[key], api) for name, key in self.names.items()]

    def anthropic_tools(self) -> list[dict[str, Any]]:
        """Return the definitions for Anthropic's Messages API."""
        tools = self._by_key()
        return [anthropic_tool(name, tools[key]) for name, key in self.names.items()]

    async def call(self, tool_call: Any) -> CallResult:
        """Run a model's tool call once. It may be of either API, as an object of its SDK or as plain JSON."""
        name, arguments = read_tool_call(tool_call)
        tool = self._by_key().get(self.names.get(name, ""))
        version = tool.version if tool else None
        if tool is None:
            tool = await self.find_tool(name)
        if tool is None:
            return await self.call_tool(name, arguments)
        return await self.call_tool(tool.key, own_arguments(tool.input_schema, arguments), version=version)

    def _by_key(self) -> dict[str, Tool]:
        return {item.tool.key: item.tool for item in self.tools}
