"""The result of `tools/list`: the tools of the surface, and downstream tools under their keys.

A list is rendered once per caller and state of the catalogue. Until that changes, a client gets the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from cachetools import LRUCache

from toolscout.errors import InvalidValueError, ToolNotFoundError
from toolscout.gateway.compat import COMPAT_TOOLS
from toolscout.gateway.discovery_tools import DISCOVERY_TOOLS
from toolscout.mcp_tools import McpTool
from toolscout.models import Caller, Overview, Tool
from toolscout.scout import Scout

Surface = Literal["compact", "browse", "registry", "all"]
SURFACES: tuple[str, ...] = get_args(Surface)

_MAX_CALLERS = 256
_PAGE_SIZE = 100
_MAX_CHARS = 1_500
_MAX_SERVER_CHARS = 1_000
_INCLUDES = {
    "compact": {"compact"},
    "browse": {"compact", "browse"},
    "registry": {"compact", "browse", "registry"},
    "all": set[str](),
}
_DISCOVERY_INSTRUCTIONS = (
    "Many more tools than you see are behind this server. Before you say that something cannot be done, tell "
    "search_tools what the tool should do: capability, object, product (several needs, or phrasings of one, as a "
    "list). Each hit has a key, says which tool calls it (call_read_tool for tools that only read, call_tool for all "
    'others), how well it fits, and its arguments. Then call with {"name": key, "arguments": {...}}. If the '
    "arguments are not clear, get_tool_details has the schema. An error says what to change. If no hit fits, search "
    "again in other words."
)
_ALL_INSTRUCTIONS = "The tools of several servers, each named <server>__<tool>."


def instructions_for(surface: str) -> str:
    """Return the instructions for a client that connects to this surface."""
    return _ALL_INSTRUCTIONS if surface == "all" else _DISCOVERY_INSTRUCTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """The list of one caller."""

    state: tuple[int, int]
    """The generation of the catalogue and the version of the policy that it was rendered for."""
    tools: tuple[dict[str, Any], ...]
    schemas: Mapping[str, Mapping[str, Any]]
    digest: str


class ToolLists:
    """Renders the list of a caller when the catalogue or the policy changes, and caches it until then."""

    def __init__(self, scout: Scout, *, surface: str, core: Sequence[str] = ()) -> None:
        """List the tools of a surface, and the downstream tools with the keys of `core`."""
        self._scout = scout
        self._surface, self._core = "", tuple(core)
        self._rendered: LRUCache[Caller, ToolList] = LRUCache(_MAX_CALLERS)
        self.choose(surface=surface, core=core)

    def choose(self, *, surface: str, core: Sequence[str]) -> None:
        """Change the surface or the core tools."""
        if surface not in SURFACES:
            raise InvalidValueError(
                f"surface must be one of {', '.join(SURFACES)}, not {surface!r}", hint="use --surface compact"
            )
        if (surface, tuple(core)) == (self._surface, self._core):
            return
        self._surface, self._core = surface, tuple(core)
        self._rendered.clear()
        self.tools: Mapping[str, McpTool] = {
            tool.name: tool for tool in (*DISCOVERY_TOOLS, *COMPAT_TOOLS) if tool.surface in _INCLUDES[surface]
        }

    async def of(self, caller: Caller) -> ToolList:
        """Return the list of a caller."""
        policy = self._scout.access.policy_version
        overview = await self._scout.overview(caller=caller)
        state = (overview.generation, policy)
        tool_list = self._rendered.get(caller)
        is_fresh = tool_list is not None and tool_list.state == state
        self._scout.metrics.cache.add("tool_lists", "hit" if is_fresh else "miss")
        if tool_list is None or not is_fresh:
            tool_list = self._rendered[caller] = await self._render(caller, state, overview)
        return tool_list

    def input_schema(self, name: str, caller: Caller | None) -> Mapping[str, Any] | None:
        """Return the input schema of the tool that the caller's last list has under a name."""
        tool_list = self._rendered.get(caller) if caller else None
        return tool_list.schemas.get(name) if tool_list else None

    async def _render(self, caller: Caller, state: tuple[int, int], overview: Overview) -> ToolList:
        summary = _catalogue_summary(overview.servers, overview.categories)
        downstream = await (self._all_tools(caller) if self._surface == "all" else self._core_tools(caller))
        tools = [tool.definition(catalogue=summary) for tool in self.tools.values()]
        tools += [_downstream_definition(tool) for tool in downstream]
        return ToolList(
            state=state,
            tools=tuple(tools),
            schemas={tool["name"]: tool["inputSchema"] for tool in tools},
            digest=hashlib.sha256(json.dumps(tools, separators=(",", ":")).encode()).hexdigest(),
        )

    async def _core_tools(self, caller: Caller) -> list[Tool]:
        """Return the core tools that the caller may see, sorted by key. Keys without a tool are skipped."""
        if not self._core:
            return []
        try:
            answer = await self._scout.get_tool_details(self._core, caller=caller)
        except ToolNotFoundError:
            return []
        return sorted((match.tool for match in answer), key=lambda tool: tool.key)

    async def _all_tools(self, caller: Caller) -> list[Tool]:
        tools: list[Tool] = []
        page = 1
        while True:
            answer = await self._scout.list_tools(detail="minimal", page=page, page_size=_PAGE_SIZE, caller=caller)
            tools += [match.tool for match in answer]
            if answer.pagination is None or not answer.pagination.has_next:
                return tools
            page += 1


def _downstream_definition(tool: Tool) -> dict[str, Any]:
    """Write a downstream tool under its key. Annotations are included only if its server is trusted."""
    definition: dict[str, Any] = {
        "name": tool.key,
        "description": tool.description,
        "inputSchema": {"type": "object", **tool.input_schema},
    }
    if tool.title:
        definition["title"] = tool.title
    if tool.output_schema:
        definition["outputSchema"] = tool.output_schema
    if tool.annotations and tool.trusted:
        definition["annotations"] = tool.annotations
    return definition


def _catalogue_summary(servers: Sequence[str], categories: Sequence[str]) -> str:
    """Name the servers and categories that can be searched. Agents search only if they expect to find something."""
    if not servers:
        return "No server is connected yet."
    summary = f"Servers: {_join_names(servers, _MAX_SERVER_CHARS)}."
    named = [name for name in categories if name != "general"]
    return f"{summary} Categories: {_join_names(named, _MAX_CHARS - len(summary))}." if named else summary


def _join_names(names: Sequence[str], max_chars: int) -> str:
    chosen: list[str] = []
    for name in sorted(names):
        if sum(len(item) + 2 for item in chosen) + len(name) > max_chars:
            break
        chosen.append(name)
    omitted = len(names) - len(chosen)
    return ", ".join(chosen) + (f" and {omitted} more" if omitted else "")
