"""The surface `registry`: the names, parameters, defaults and result fields that agents of other systems use."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from toolscout.errors import InvalidValueError
from toolscout.gateway.answer_limit import fit_hits
from toolscout.gateway.call_forwarder import ToolRequest
from toolscout.gateway.discovery_tools import Count, InnerArguments
from toolscout.mcp_tools import WRITES, McpTool, answer_result, mcp_tool
from toolscout.models import Tool, ToolMatch
from toolscout.tool_keys import split_key, tool_key

_SEARCH: dict[str, Any] = {
    "surface": "registry",
    "output_schema": {"type": "object", "properties": {"result": {"type": "array"}}},
    "ignores_unknown": True,
}
_CALL: dict[str, Any] = {
    "surface": "registry",
    "annotations": WRITES,
    "calls_other_tool": True,
    "ignores_unknown": True,
}


@mcp_tool("Find the best tools for a need, by text, by tags, or both.", **_SEARCH)
async def intelligent_tool_finder(
    request: ToolRequest,
    natural_language_query: Annotated[str | None, Field(description="what the tool should do")] = None,
    tags: Annotated[list[str] | None, Field(description="all of them must be there")] = None,
    top_k_services: Count = 3,
    top_n_tools: Count = 1,
) -> dict[str, Any]:
    """Find the best tools of the best servers."""
    if not natural_language_query and not tags:
        raise InvalidValueError(
            "natural_language_query and tags are both missing", hint="say what the tool should do, or name its tags"
        )
    if not natural_language_query:
        matches = await request.scout.find_by_tags(tags or [], match="all", detail="full", caller=request.caller)
        return _hits_result(request, [_finder_hit(match) for match in matches[:top_n_tools]])
    answer = await request.scout.search_tools(
        natural_language_query,
        tags=tags,
        match="all",
        top_k=top_n_tools,
        detail="full",
        ranker="boosted",
        top_k_services=top_k_services,
        caller=request.caller,
    )
    return _hits_result(request, [_finder_hit(match) for match in answer])


@mcp_tool("Find tools for a need across all servers.", **_SEARCH)
async def search_registry_tools(request: ToolRequest, query: str, max_results: Count = 3) -> dict[str, Any]:
    """Find tools. invoke_mcp_tool takes the `server_path` and `tool_name` of a hit."""
    answer = await request.scout.search_tools(
        query, top_k=max_results, detail="full", ranker="boosted", caller=request.caller
    )
    return _hits_result(
        request,
        [
            {
                "tool_name": match.tool.name,
                "server_path": _path(match.tool),
                "server_name": match.tool.server_title,
                "description": match.tool.description,
                "tool_schema": match.tool.input_schema,
                "relevance_score": _score(match),
            }
            for match in answer
        ],
    )


@mcp_tool("Call a tool that intelligent_tool_finder found.", **_CALL)
async def invoke_mcp_tool(
    request: ToolRequest,
    server_name: Annotated[str, Field(description="the service_path of the hit")],
    tool_name: str,
    arguments: InnerArguments = None,
    mcp_registry_url: Annotated[str | None, Field(description="not needed here")] = None,  # noqa: ARG001
) -> dict[str, Any]:
    """Call a tool by its name or key, and its server's name or path."""
    server = server_name.strip("/")
    key = tool_name if split_key(tool_name)[0] == server else tool_key(server, tool_name)
    return await request.forward(key, arguments)


@mcp_tool("Search for tools; each comes with its full input schema.", **_SEARCH)
async def tool_search(request: ToolRequest, query: str, max_results: Count = 10) -> dict[str, Any]:
    """Search by fuzzy words."""
    answer = await request.scout.search_tools(
        query, top_k=max_results, detail="full", ranker="fuzzy", caller=request.caller
    )
    return _hits_result(
        request,
        [
            {
                "name": match.tool.key,
                "description": match.tool.description,
                "score": _score(match),
                "input_schema": match.tool.input_schema,
            }
            for match in answer
        ],
    )


@mcp_tool("Call a tool that tool_search found.", **_CALL)
async def execute_tool(request: ToolRequest, name: str, arguments: InnerArguments = None) -> dict[str, Any]:
    """Call a tool by its key."""
    return await request.forward(name, arguments)


COMPAT_TOOLS: tuple[McpTool, ...] = (
    intelligent_tool_finder,
    search_registry_tools,
    invoke_mcp_tool,
    tool_search,
    execute_tool,
)


def _hits_result(request: ToolRequest, hits: list[dict[str, Any]]) -> dict[str, Any]:
    """Write hits as those systems do: as text a bare list, as structured content a list under `result`."""
    hits, notes = fit_hits(hits, request.max_bytes)
    return answer_result({"result": hits}, text=hits, tips=notes)


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
