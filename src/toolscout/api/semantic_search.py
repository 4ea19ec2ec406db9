"""The search of the MCP gateway registry, in its shape, so that its users can switch without a change of their code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from toolscout.api import response_bodies
from toolscout.api.callers import Anyone, Requester
from toolscout.api.json_answers import json_answer
from toolscout.api.request_bodies import SemanticSearchBody
from toolscout.errors import EmptyQueryError, UnknownTagError
from toolscout.models import Answer, ServerStatus, ToolMatch

router = APIRouter(tags=["compatibility"])

_KINDS = ("servers", "tools", "agents", "skills", "virtual_servers", "custom")
_MOST_TOOLS_PER_SERVER = 5
_TAG = re.compile(r"(?<!\S)#(?!\d+\b)([\w-]+)")


@router.post("/api/search/semantic", responses=response_bodies.SEMANTIC, summary="Search, in another system's shape")
async def search_semantic(request: Request, body: SemanticSearchBody, who: Anyone) -> Response:
    """Find tools, and the servers that they belong to. A tool must have all `tags`, and each `#tag` of the query.

    A `#word` of the query that no tool has as a tag is a word. Other kinds are always empty. Every tool is reached at
    the endpoint of this gateway.
    """
    origin = request.app.state.public_origin or str(request.base_url).rstrip("/")
    try:
        answer = await _find(body, who)
    except UnknownTagError:  # that system finds nothing then
        return json_answer(_in_its_shape(body, (), "hybrid", {}, origin))
    servers = {item.server: item for item in await who.visible_servers()}
    mode = "lexical-only" if answer.metadata.degraded else "hybrid"
    return json_answer(_in_its_shape(body, answer[: body.max_results], mode, servers, origin))


async def _find(body: SemanticSearchBody, who: Requester) -> Answer:
    query, written = await _split_tags(body.query, who)
    tags = [tag.removeprefix("#") for tag in body.tags or []] + written
    if query:
        return await who.scout.search_tools(query, tags, body.max_results, match="all", caller=who.caller)
    if tags:
        return await who.scout.find_by_tags(tags, "all", caller=who.caller)
    raise EmptyQueryError("there is neither a query nor a tag", hint="say what the tool should do")


async def _split_tags(query: str, who: Requester) -> tuple[str, list[str]]:
    """Return a query without the tags that it names, and these. What no tool has as a tag is a word."""
    if not _TAG.search(query):
        return " ".join(query.split()), []
    known = {tag.name.casefold() for tag in await who.scout.list_tags(caller=who.caller)}
    tags = [name for name in _TAG.findall(query) if name.casefold() in known]
    words = _TAG.sub(lambda found: " " if found[1].casefold() in known else found[0], query)
    return " ".join(words.split()), tags


def _in_its_shape(
    body: SemanticSearchBody,
    matches: Sequence[ToolMatch],
    mode: str,
    servers: Mapping[str, ServerStatus],
    origin: str,
) -> dict[str, Any]:
    reached = {"endpoint_url": f"{origin}/mcp"}
    kinds = body.entity_types or ["mcp_server", "tool"]
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _KINDS}
    if "tool" in kinds:
        rows["tools"] = [_tool(match) | reached for match in matches]
    if "mcp_server" in kinds:
        by_server: dict[str, list[ToolMatch]] = {}
        for match in matches:
            by_server.setdefault(match.tool.server, []).append(match)
        reached_by = {**reached, "supported_transports": ["streamable-http"]}
        rows["servers"] = [_server(key, found, servers.get(key)) | reached_by for key, found in by_server.items()]
    totals = {f"total_{kind}": len(found) for kind, found in rows.items()}
    return {"query": body.query, "search_mode": mode, **rows, **totals}


def _hit(match: ToolMatch) -> dict[str, Any]:
    return {
        "relevance_score": min(max(match.score or 0.0, 0.0), 1.0),
        "match_context": f"fit: {match.fit}" if match.fit else None,
    }


def _tool(match: ToolMatch) -> dict[str, Any]:
    tool = match.tool
    return {
        "server_path": f"/{tool.server}",
        "server_name": tool.server_title or tool.server,
        "tool_name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        **_hit(match),
    }


def _server(key: str, matches: Sequence[ToolMatch], status: ServerStatus | None) -> dict[str, Any]:
    """Return a server with its best tools. It is as relevant as the best of them."""
    tools = [_tool(match) for match in matches[:_MOST_TOOLS_PER_SERVER]]
    names = ("tool_name", "description", "inputSchema", "relevance_score", "match_context")
    return {
        "path": f"/{key}",
        "server_name": tools[0]["server_name"],
        "description": None,
        "tags": [],
        "num_tools": status.tools if status else len(matches),
        "is_enabled": status is None or status.state != "disabled",
        **_hit(matches[0]),
        "matching_tools": [{name: tool[name] for name in names} for tool in tools],
    }
