"""What an agent is shown: a handful of tools whose descriptions say what is behind them, the same bytes every time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from toolscout.errors import InvalidValueError
from toolscout.models import Tool

Surface = Literal["compact", "browse", "registry", "all"]
SURFACES: tuple[str, ...] = get_args(Surface)

_MOST_CHARS = 1_500
_SERVERS_CHARS = 1_000
_READS = {"readOnlyHint": True, "openWorldHint": False}
_WRITES = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}
_ANSWER = {
    "type": "object",
    "properties": {"tools": {"type": "array"}, "results": {"type": "array"}, "metadata": {"type": "object"}},
}

_FOUND = {"type": "object", "properties": {"result": {"type": "array"}}}

_CALLS = frozenset({"call_tool", "call_read_tool"})
CALLS = {"compact": _CALLS, "browse": _CALLS, "registry": _CALLS | {"execute_tool"}, "all": frozenset[str]()}
"""The tools of each surface that call others by key: they are the same whatever the catalogue holds."""


def check_surface(surface: str) -> None:
    """Refuse a surface that does not exist."""
    if surface not in SURFACES:
        raise InvalidValueError(f"surface is {', '.join(SURFACES)}, not {surface!r}", hint="use --surface compact")


def list_surface(
    surface: str, *, servers: Sequence[str], categories: Sequence[str], core: Sequence[Tool], everything: Sequence[Tool]
) -> list[dict[str, Any]]:
    """Return the tools to list, in a fixed order: discovery first, then core tools by key."""
    if surface == "all":
        return [passed_through(tool) for tool in everything]
    tools = _compact(_behind(servers, categories))
    if surface in ("browse", "registry"):
        tools += _browse()
    if surface == "registry":
        tools += _registry()
    return tools + [passed_through(tool) for tool in core]


def passed_through(tool: Tool) -> dict[str, Any]:
    """Write a downstream tool as it is, under its key."""
    shown: dict[str, Any] = {
        "name": tool.key,
        "description": tool.description,
        "inputSchema": {"type": "object", **tool.input_schema},
    }
    if tool.title:
        shown["title"] = tool.title
    if tool.output_schema:
        shown["outputSchema"] = tool.output_schema
    if tool.annotations and tool.trusted:
        shown["annotations"] = tool.annotations
    return shown


def _behind(servers: Sequence[str], categories: Sequence[str]) -> str:
    """Say which servers and categories can be searched: an agent looks only where it knows something is."""
    if not servers:
        return "No server is connected yet."
    said = f"Servers: {_named(servers, _SERVERS_CHARS)}."
    shown = [name for name in categories if name != "general"]
    return f"{said} Categories: {_named(shown, _MOST_CHARS - len(said))}." if shown else said


def _named(names: Sequence[str], most_chars: int) -> str:
    chosen: list[str] = []
    for name in sorted(names):
        if sum(len(item) + 2 for item in chosen) + len(name) > most_chars:
            break
        chosen.append(name)
    left = len(names) - len(chosen)
    return ", ".join(chosen) + (f" and {left} more" if left else "")


def _compact(behind: str) -> list[dict[str, Any]]:
    return [
        _tool(
            "search_tools",
            "Find tools by what they do, before saying that something cannot be done. Describe the need in a few "
            f"words; ask several at once with a list. Call a hit with the tool that its call_with names. {behind}",
            {
                "query": {"anyOf": [_TEXT, _TEXTS], "description": "one need, or a list of them"},
                "tags": _TEXTS,
                "match": {"enum": ["any", "all"], "default": "any", "description": "of the tags"},
                "category": _TEXT,
                "servers": _TEXTS,
                "limit": {"type": "integer", "default": 5, "minimum": 1},
                "detail": _detail("brief"),
                "max_tokens": {"type": "integer", "minimum": 1},
            },
            required=["query"],
            output=_ANSWER,
        ),
        _tool(
            "get_tool_details",
            "Full definitions of tools: description and input schema. Read them before the first call.",
            {"names": {"anyOf": [_TEXT, _TEXTS], "description": "keys from search_tools"}},
            required=["names"],
            output=_ANSWER,
        ),
        _call("call_read_tool", "Call a tool that only reads (call_with says call_read_tool).", _READS),
        _call("call_tool", "Call any tool, also one that writes.", _WRITES),
    ]


def _browse() -> list[dict[str, Any]]:
    return [
        _tool(
            "list_tools",
            "List tools page by page.",
            {
                "detail": _detail("minimal"),
                "category": _TEXT,
                "server": _TEXT,
                "page": {"type": "integer", "default": 1, "minimum": 1},
                "page_size": {"type": "integer", "default": 50, "minimum": 1, "maximum": 100},
            },
            output=_ANSWER,
        ),
        _tool("list_categories", "List categories with how many tools each holds.", {}, output={"type": "object"}),
        _tool(
            "find_by_tags",
            "Find the tools that carry any, or all, of the tags.",
            {"tags": _TEXTS, "match": {"enum": ["any", "all"], "default": "any"}, "detail": _detail("brief")},
            required=["tags"],
            output=_ANSWER,
        ),
        _tool(
            "get_related_tools",
            "Show what goes with a tool.",
            {"name": {**_TEXT, "description": "a key"}, "limit": {"type": "integer", "default": 5, "minimum": 1}},
            required=["name"],
            output=_ANSWER,
        ),
    ]


def _registry() -> list[dict[str, Any]]:
    finder = {
        "natural_language_query": {**_TEXT, "description": "what the tool should do"},
        "tags": {**_TEXTS, "description": "all of them must be there"},
        "top_k_services": {"type": "integer", "default": 3, "minimum": 1},
        "top_n_tools": {"type": "integer", "default": 1, "minimum": 1},
    }
    return [
        _tool(
            "intelligent_tool_finder",
            "Find the best tools for a need, by text, by tags, or both.",
            finder,
            output=_FOUND,
        ),
        _tool(
            "search_registry_tools",
            "Find tools for a need across all servers.",
            {"query": _TEXT, "max_results": {"type": "integer", "default": 3, "minimum": 1}},
            required=["query"],
            output=_FOUND,
        ),
        _tool(
            "invoke_mcp_tool",
            "Call a tool that intelligent_tool_finder found.",
            {
                "server_name": {**_TEXT, "description": "the service_path of the hit"},
                "tool_name": _TEXT,
                "arguments": {"type": "object"},
                "mcp_registry_url": {**_TEXT, "description": "not needed here"},
            },
            required=["server_name", "tool_name"],
            annotations=_WRITES,
        ),
        _tool(
            "tool_search",
            "Search for tools; each comes with its full input schema.",
            {"query": _TEXT, "max_results": {"type": "integer", "default": 10, "minimum": 1}},
            required=["query"],
            output=_FOUND,
        ),
        _tool(
            "execute_tool",
            "Call a tool that tool_search found.",
            {"name": _TEXT, "arguments": {"type": "object"}},
            required=["name"],
            annotations=_WRITES,
        ),
    ]


_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}


def _detail(default: str) -> dict[str, Any]:
    return {"enum": ["minimal", "brief", "full"], "default": default}


def _call(name: str, description: str, annotations: dict[str, Any]) -> dict[str, Any]:
    properties = {
        "name": {**_TEXT, "description": "a key"},
        "arguments": {"type": "object"},
        "version": {**_TEXT, "description": "of the hit: notices a definition that changed since"},
    }
    return _tool(name, description, properties, required=["name"], annotations=annotations)


def _tool(
    name: str,
    description: str,
    properties: dict[str, Any],
    *,
    required: Sequence[str] = (),
    annotations: dict[str, Any] = _READS,
    output: dict[str, Any] | None = None,
) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    tool = {"name": name, "description": description, "inputSchema": schema, "annotations": annotations}
    return {**tool, "outputSchema": output} if output else tool
