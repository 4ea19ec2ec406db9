"""The tokens that an agent reads from the gateway, compared with the definitions of all tools."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from mcp import Client

from benchmarks.data import bench_folder, rows
from toolscout import Scout
from toolscout.gateway.server import Gateway
from toolscout.text import count_tokens, tokens_of

QUERIES = (
    "create an issue in the repository",
    "send a message to a channel",
    "read a file from disk",
    "query the database",
    "what time is it in Tokyo",
    "take a screenshot of a web page",
    "refund a payment",
    "find the root cause of an error in production",
    "schedule a meeting with the team",
    "deploy the service and watch the logs",
)


async def count_surface(folder: Path) -> dict[str, Any]:
    """Count over the definitions of real servers."""
    path = bench_folder() / "real_servers" / "tools.jsonl"
    tools = rows(path)
    async with Scout.open(tools=path, store=f"sqlite:///{folder / 'tokens.db'}") as scout:
        compact = await _listed(scout, "compact")
        everything = await _listed(scout, "all")
        async with Client(Gateway(scout).server) as client:
            answers = [
                sum(
                    tokens_of(len(part.text))
                    for part in (await client.call_tool("search_tools", {"query": query})).content
                )
                for query in QUERIES
            ]
    return {
        "tools": len(tools),
        "servers": len({row.get("server") for row in tools}),
        "full_list": everything,
        "compact": compact,
        "search_median": round(statistics.median(answers)),
        "search_largest": max(answers),
    }


async def _listed(scout: Scout, surface: str) -> int:
    async with Client(Gateway(scout, surface=surface).server) as client:
        listed = (await client.list_tools()).tools
    return count_tokens([tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed])
