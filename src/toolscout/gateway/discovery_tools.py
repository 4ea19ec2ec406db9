"""The tools of the surfaces `compact` and `browse`, which find tools, show their definitions and call them by key."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from toolscout.errors import (
    InvalidArgumentsError,
    ToolNotFoundError,
    UnknownCategoryError,
    UnknownServerError,
    UnknownTagError,
)
from toolscout.gateway.answer_limit import fit_answer
from toolscout.gateway.call_forwarder import ToolRequest
from toolscout.mcp_tools import WRITES, McpTool, answer_result, error_result, mcp_tool, meta_with_repairs
from toolscout.models import Answer, Detail, Match, answer_text, answers_text

ANSWER_TOKENS = 2_000
"""The most tokens of an answer to a search, metadata included, unless `max_tokens` allows more."""

_FILTER_OF_ERROR = {UnknownTagError: "tags", UnknownCategoryError: "category", UnknownServerError: "servers"}
_UNKNOWN_FILTERS = tuple(_FILTER_OF_ERROR)
_LONGEST_INVENTED_KEY = 200
_PLACEHOLDER = re.compile(r"<(string|number|integer|boolean|object|any)(\[\])*>")
_MOST_INVENTED_ARGUMENTS = 8
_SURE = ("strong", "likely")
_VERSION = re.compile("[0-9a-f]{6,64}")
_MOST_REASON_CHARS = 200
_METADATA_TOKENS = 300
_LEAST_TOKENS = 60
_MOST_SIGN_INS = 5
_ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"tools": {"type": "array"}, "results": {"type": "array"}, "metadata": {"type": "object"}},
}

Count = Annotated[int, Field(ge=1)]
Key = Annotated[str, Field(description="a key")]
InnerArguments = Annotated[Any, WithJsonSchema({"type": "object"})]
Version = Annotated[str | None, Field(description="of the hit: notices a definition that changed since")]


@mcp_tool(
    "Find tools by what they do, before saying that something cannot be done. Say capability, object and product: "
    "'create an issue in GitHub'. Pass several needs, or phrasings of one, as a list. "
    "Each hit names its key, the tool that calls it, how well it fits (strong, likely, weak) and its arguments. "
    "{catalogue}",
    surface="compact",
    output_schema=_ANSWER_SCHEMA,
)
async def search_tools(
    request: ToolRequest,
    query: Annotated[str | list[str], Field(description="what the tool should do, or a list of such needs")],
    tags: Annotated[list[str] | None, Field(description="rarely needed")] = None,
    match: Annotated[Match, Field(description="of the tags")] = "any",
    category: str | None = None,
    servers: Annotated[list[str] | None, Field(description="only if the user names one")] = None,
    limit: Count = 5,
    detail: Detail = "brief",
    max_tokens: Count | None = None,
) -> dict[str, Any]:
    """Answer one query, or several within the same token budget."""
    queries = query if isinstance(query, list) else [query]

    async def search(filters: Mapping[str, Any]) -> list[Answer]:
        return await request.scout.search_tools(
            queries,
            match=match,
            top_k=limit,
            detail=detail,
            max_tokens=_tokens_per_query(max_tokens, len(queries)),
            caller=request.caller,
            **filters,
        )

    answers = await _search_with_fewer_filters(search, {"tags": tags, "category": category, "servers": servers})
    answers[0] = await _with_sign_ins(request, answers, servers)
    answers = [fit_answer(answer, request.max_bytes // len(answers)) for answer in answers]
    budget = ANSWER_TOKENS if max_tokens is None else max_tokens
    if not isinstance(query, list):
        return answer_result(answers[0].to_dict(), text=answer_text(answers[0], budget))
    body = {"results": [answer.to_dict() for answer in answers]}
    for later in body["results"][1:]:
        later["metadata"]["categories_available"] = []  # equal in every answer, so only the first one has them
    return answer_result(body, text=answers_text(answers, queries, budget))


async def _with_sign_ins(request: ToolRequest, answers: Sequence[Answer], servers: Sequence[str] | None) -> Answer:
    """Return the first answer. If no hit surely fits, it names the servers whose tools a sign-in would add."""
    missing = await request.forwarder.missing_sign_ins(request.caller)
    sure = all(any(match.fit in _SURE for match in answer) for answer in answers)
    named = {key: hint for key, hint in missing.items() if not sure or key in (servers or ())}
    if not named:
        return answers[0]
    told = "; ".join(f"{key}: {hint}" for key, hint in list(named.items())[:_MOST_SIGN_INS])
    note = f"Servers whose tools are found once the user has signed in: {told}."
    return replace(answers[0], suggestions=(*answers[0].suggestions, note))


async def _search_with_fewer_filters(
    search: Callable[[Mapping[str, Any]], Awaitable[list[Answer]]], filters: Mapping[str, Any]
) -> list[Answer]:
    """Search without the filters that leave nothing to be found, and say so in the first answer.

    Small models fill in every parameter that they see. An error, or an empty answer, would end their task.
    """
    left = {name: value for name, value in filters.items() if value}
    notes: list[str] = []
    while True:
        try:
            answers = await search(left)
        except _UNKNOWN_FILTERS as error:
            wrong, reason = _FILTER_OF_ERROR[type(error)], error.message[:_MOST_REASON_CHARS]
        else:
            if any(answers) or not left:
                if left and not any(match.fit in _SURE for answer in answers for match in answer):
                    notes += _better_without(left, await search({}))
                return [replace(answers[0], suggestions=(*notes, *answers[0].suggestions)), *answers[1:]]
            wrong, reason = next(iter(left)), "with all filters, nothing was found"
        del left[wrong]
        notes.append(f"Searched without {wrong}: {reason}.")


def _better_without(filters: Mapping[str, Any], answers: Sequence[Answer]) -> list[str]:
    """Name the best hit of each query that the filters exclude, if it surely fits."""
    best = [answer[0] for answer in answers if answer and answer[0].fit in _SURE]
    return [f"Without {', '.join(filters)}: {match.tool.key} ({match.fit} fit)." for match in best]


def _tokens_per_query(max_tokens: int | None, queries: int) -> int:
    """Divide the token budget between the queries. Without `max_tokens`, reserve a part for the metadata."""
    count = max(queries, 1)
    if max_tokens is not None:
        return max(max_tokens // count, 1)
    return max(ANSWER_TOKENS // count - _METADATA_TOKENS // min(count, 3), _LEAST_TOKENS)


@mcp_tool(
    "Full definitions, with input schemas, of hits whose arguments do not say enough.",
    surface="compact",
    output_schema=_ANSWER_SCHEMA,
)
async def get_tool_details(
    request: ToolRequest, names: Annotated[str | list[str], Field(description="keys from search_tools")]
) -> dict[str, Any]:
    """Return full definitions."""
    answer = await request.scout.get_tool_details(names, caller=request.caller)
    return _result(request, answer)


def _result(request: ToolRequest, answer: Answer) -> dict[str, Any]:
    answer = fit_answer(answer, request.max_bytes)
    return answer_result(answer.to_dict(), text=answer_text(answer))


@mcp_tool(
    "Call a tool that only reads (call_with says call_read_tool).",
    surface="compact",
    calls_other_tool=True,
)
async def call_read_tool(
    request: ToolRequest, name: Key, arguments: InnerArguments = None, version: Version = None
) -> dict[str, Any]:
    """Call a tool whose trusted server declares it read-only."""
    return await _call(request, name, arguments, version, read_only=True)


@mcp_tool("Call any tool, also one that writes.", surface="compact", annotations=WRITES, calls_other_tool=True)
async def call_tool(
    request: ToolRequest, name: Key, arguments: InnerArguments = None, version: Version = None
) -> dict[str, Any]:
    """Call any tool that the caller may call."""
    return await _call(request, name, arguments, version)


async def _call(
    request: ToolRequest, name: str, arguments: Any, version: str | None, *, read_only: bool = False
) -> dict[str, Any]:
    """Call a tool, and help models with the mistakes that small ones make most.

    A key that they invent is answered with the tools that it may have meant. An invented version, such as "latest", is
    ignored, and the result says so. Searches that they wrap into a call are answered.
    """
    own = next((tool for tool in DISCOVERY_TOOLS if tool.name == name and not tool.calls_other_tool), None)
    if own:
        result, _ = await own.run(request, arguments if isinstance(arguments, Mapping) else {})
        return dict(result)
    _refuse_placeholders(arguments)
    invented = version is not None and not _VERSION.fullmatch(version)
    try:
        result = await request.forward(name, arguments, version=None if invented else version, read_only=read_only)
    except ToolNotFoundError as error:
        result = error_result(error)
        if name.strip() and len(name) <= _LONGEST_INVENTED_KEY:
            answer = await request.scout.search_tools(_words_of_call(name, arguments), top_k=3, caller=request.caller)
            result["content"].append({"type": "text", "text": answer_text(answer, ANSWER_TOKENS)})
        return result
    if invented:
        result["_meta"] = meta_with_repairs(result.get("_meta"), ["version is not that of a hit; it is ignored"])
    return result


def _refuse_placeholders(arguments: Any) -> None:
    """Refuse the types that an answer shows in place of values. Small models copy them."""
    if not isinstance(arguments, Mapping):
        return
    for name, value in arguments.items():
        if isinstance(value, str) and _PLACEHOLDER.fullmatch(value):
            raise InvalidArgumentsError(
                f"{name[:_LONGEST_INVENTED_KEY]} is still the placeholder {value}",
                hint="write the value from the request in its place; nothing was sent",
            )


def _words_of_call(name: str, arguments: Any) -> str:
    """Write an invented call as a request: what the tool is called, and what it is given."""
    names = [item for item in arguments if len(item) <= _LONGEST_INVENTED_KEY] if isinstance(arguments, Mapping) else []
    return " ".join([name, *names[:_MOST_INVENTED_ARGUMENTS]])


@mcp_tool("List tools page by page.", surface="browse", output_schema=_ANSWER_SCHEMA)
async def list_tools(
    request: ToolRequest,
    detail: Detail = "minimal",
    category: str | None = None,
    server: str | None = None,
    page: Count = 1,
    # None means TOOLSCOUT_PAGE_SIZE. The schema shows the default of that setting.
    page_size: Annotated[int | None, Field(ge=1, le=100, json_schema_extra={"default": 50})] = None,
) -> dict[str, Any]:
    """Return one page of the catalogue."""
    answer = await request.scout.list_tools(
        detail=detail, category=category, server=server, page=page, page_size=page_size, caller=request.caller
    )
    return _result(request, answer)


@mcp_tool(
    "List categories with how many tools each holds.",
    surface="browse",
    output_schema={"type": "object"},
)
async def list_categories(request: ToolRequest) -> dict[str, Any]:
    """Count the tools of each category."""
    categories = await request.scout.list_categories(caller=request.caller)
    return answer_result({"categories": [item.to_dict() for item in categories]})


@mcp_tool(
    "Find the tools that carry any, or all, of the tags.",
    surface="browse",
    output_schema=_ANSWER_SCHEMA,
)
async def find_by_tags(
    request: ToolRequest, tags: list[str], match: Match = "any", detail: Detail = "brief"
) -> dict[str, Any]:
    """Return the tools that carry any, or all, of the tags."""
    answer = await request.scout.find_by_tags(tags, match=match, detail=detail, caller=request.caller)
    return _result(request, answer)


@mcp_tool("Show what goes with a tool.", surface="browse", output_schema=_ANSWER_SCHEMA)
async def get_related_tools(request: ToolRequest, name: Key, limit: Count = 5) -> dict[str, Any]:
    """Return related tools, each with its strongest relation."""
    answer = await request.scout.get_related_tools(name, limit=limit, caller=request.caller)
    return _result(request, answer)


DISCOVERY_TOOLS: tuple[McpTool, ...] = (
    search_tools,
    get_tool_details,
    call_read_tool,
    call_tool,
    list_tools,
    list_categories,
    find_by_tags,
    get_related_tools,
)
