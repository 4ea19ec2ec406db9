"""The discovery tools: arguments in, the one answer shape out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolscout.discovery.format import format_answer, format_answers, format_categories
from toolscout.models import Caller
from toolscout.scout import Scout

ANSWER_TOKENS = 2_000
"""An answer to a search stays under this many tokens, its metadata included, unless `max_tokens` allows more."""

_METADATA_TOKENS = 300
_LEAST_TOKENS = 60

Arguments = Mapping[str, Any]
Handler = Callable[[Scout, Arguments, Caller], Awaitable[dict[str, Any]]]


async def search_tools(scout: Scout, given: Arguments, caller: Caller) -> dict[str, Any]:
    """Find tools for one need, or for several at once within the same budget."""
    query = given["query"]
    queries = list(query) if isinstance(query, list) else [query]
    count = max(len(queries), 1)
    metadata_tokens = _METADATA_TOKENS if given.get("max_tokens") is None else 0
    budget = (given.get("max_tokens") or ANSWER_TOKENS) // count - metadata_tokens // min(count, 3)
    answers = await scout.search_tools(
        queries,
        tags=given.get("tags"),
        match=given.get("match", "any"),
        category=given.get("category"),
        servers=given.get("servers"),
        top_k=given.get("limit", 5),
        detail=given.get("detail", "brief"),
        max_tokens=max(budget, _LEAST_TOKENS if given.get("max_tokens") is None else 1),
        caller=caller,
    )
    if not isinstance(query, list):
        return format_answer(answers[0])
    shown = format_answers(answers)
    for later in shown["results"][1:]:
        later["metadata"]["categories_available"] = []  # said once: the same in every answer
    return shown


async def get_tool_details(scout: Scout, given: Arguments, caller: Caller) -> dict[str, Any]:
    """Show full definitions."""
    return format_answer(await scout.get_tool_details(given["names"], caller=caller))


async def list_tools(scout: Scout, given: Arguments, caller: Caller) -> dict[str, Any]:
    """List tools page by page."""
    answer = await scout.list_tools(
        detail=given.get("detail", "minimal"),
        category=given.get("category"),
        server=given.get("server"),
        page=given.get("page", 1),
        page_size=given.get("page_size"),
        caller=caller,
    )
    return format_answer(answer)


async def list_categories(scout: Scout, _given: Arguments, caller: Caller) -> dict[str, Any]:
    """Count the tools of each category."""
    return format_categories(await scout.list_categories(caller=caller))


async def find_by_tags(scout: Scout, given: Arguments, caller: Caller) -> dict[str, Any]:
    """Return the tools that carry any, or all, of the tags."""
    answer = await scout.find_by_tags(
        given["tags"], match=given.get("match", "any"), detail=given.get("detail", "brief"), caller=caller
    )
    return format_answer(answer)


async def get_related_tools(scout: Scout, given: Arguments, caller: Caller) -> dict[str, Any]:
    """Return what goes with a tool."""
    return format_answer(await scout.get_related_tools(given["name"], limit=given.get("limit", 5), caller=caller))


DISCOVERY: Mapping[str, Handler] = {
    "search_tools": search_tools,
    "get_tool_details": get_tool_details,
    "list_tools": list_tools,
    "list_categories": list_categories,
    "find_by_tags": find_by_tags,
    "get_related_tools": get_related_tools,
}
