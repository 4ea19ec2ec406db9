"""The registry surface: the names, parameters, defaults and result fields that agents of other systems already use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolscout.errors import InvalidValueError
from toolscout.models import Answer, Caller, Tool, ToolMatch
from toolscout.scout import Scout
from toolscout.tool_keys import split_key, tool_key

Arguments = Mapping[str, Any]
Handler = Callable[[Scout, Arguments, Caller], Awaitable[list[dict[str, Any]]]]


async def intelligent_tool_finder(scout: Scout, given: Arguments, caller: Caller) -> list[dict[str, Any]]:
    """Find the best tools of the best services, by text, by tags (all of them), or both."""
    query, tags = given.get("natural_language_query"), given.get("tags")
    most = given.get("top_n_tools", 1)
    if not query and not tags:
        raise InvalidValueError(
            "neither natural_language_query nor tags is given", hint="say what the tool should do, or name its tags"
        )
    if not query:
        tagged = await scout.find_by_tags(tags or [], match="all", detail="full", caller=caller)
        return [_finder_hit(match) for match in tagged[:most]]
    answer = await scout.search_tools(
        query,
        tags=tags,
        match="all",
        top_k=most,
        detail="full",
        ranker="boosted",
        top_k_services=given.get("top_k_services", 3),
        caller=caller,
    )
    return [_finder_hit(match) for match in answer]


async def search_registry_tools(scout: Scout, given: Arguments, caller: Caller) -> list[dict[str, Any]]:
    """Find tools for a need; `server_path` and `tool_name` are what invoke_mcp_tool takes."""
    answer = await scout.search_tools(
        given["query"], top_k=given.get("max_results", 3), detail="full", ranker="boosted", caller=caller
    )
    return [
        {
            "tool_name": match.tool.name,
            "server_path": _path(match.tool),
            "server_name": match.tool.server_title,
            "description": match.tool.description,
            "tool_schema": match.tool.input_schema,
            "relevance_score": _score(match),
        }
        for match in answer
    ]


async def tool_search(scout: Scout, given: Arguments, caller: Caller) -> list[dict[str, Any]]:
    """Search by fuzzy words; each hit has its full input schema."""
    answer: Answer = await scout.search_tools(
        given["query"], top_k=given.get("max_results", 10), detail="full", ranker="fuzzy", caller=caller
    )
    return [
        {
            "name": match.tool.key,
            "description": match.tool.description,
            "score": _score(match),
            "input_schema": match.tool.input_schema,
        }
        for match in answer
    ]


def invoked_key(given: Arguments) -> str:
    """Return the key that invoke_mcp_tool means: a service path, or a server's name, and a tool's name."""
    server, name = str(given["server_name"]).strip("/"), str(given["tool_name"])
    return name if split_key(name)[0] == server else tool_key(server, name)


def _finder_hit(match: ToolMatch) -> dict[str, Any]:
    tool = match.tool
    return {
        "tool_name": tool.name,
        "tool_parsed_description": {
            "main": tool.description,
            "parameters": dict(tool.input_schema.get("properties") or {}),
        },
        "tool_schema": tool.input_schema,
        "service_path": _path(tool),
        "service_name": tool.server_title,
        "overall_similarity_score": _score(match),
    }


def _path(tool: Tool) -> str:
    return f"/{tool.server}"


def _score(match: ToolMatch) -> float | None:
    return None if match.score is None else round(match.score, 4)


FINDERS: Mapping[str, Handler] = {
    "intelligent_tool_finder": intelligent_tool_finder,
    "search_registry_tools": search_registry_tools,
    "tool_search": tool_search,
}
