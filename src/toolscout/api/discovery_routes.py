"""Routes that find tools: search, discover, explain, tools, categories, tags."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from toolscout.api import response_bodies
from toolscout.api.body_route import BodyRoute
from toolscout.api.callers import Anyone, Operator
from toolscout.api.json_answers import Page, PageSize, json_answer, page_answer, tagged_answer
from toolscout.api.request_bodies import DiscoverBody, ExplainBody, Name, SearchBody
from toolscout.models import Detail, Match, Scope, SearchOptions, ToolSort
from toolscout.scout.explanation import explain_tool
from toolscout.scout.inventory import InventoryFilter, InventorySort, ToolState

quick_router = APIRouter(tags=["discovery"], route_class=BodyRoute)
router = APIRouter(tags=["discovery"])

Word = Annotated[str | None, Query(min_length=1, max_length=256)]


@quick_router.post("/search", responses=response_bodies.ANSWERS, summary="Find tools by what they do")
async def search(body: SearchBody, who: Anyone) -> Response:
    """Search by meaning and by words. A list of queries gives `results`, one answer for each."""
    answers = await who.scout.search_tools(
        body.query if isinstance(body.query, list) else [body.query],
        tags=body.tags,
        top_k=body.limit,
        match=body.match,
        category=body.category,
        servers=body.servers or None,
        threshold=body.threshold,
        detail=body.detail,
        max_tokens=body.max_tokens,
        ranker=body.ranker,
        explain=body.explain,
        caller=who.in_place_of(body.user, body.tenant, body.groups),
    )
    if isinstance(body.query, list):
        return json_answer({"results": [answer.to_dict() for answer in answers]})
    return json_answer(answers[0].to_dict())


@router.post("/discover", responses=response_bodies.SELECTION, summary="Choose the tools of one chat turn")
async def discover(body: DiscoverBody, who: Anyone) -> Response:
    """Choose the few tools that a turn of a conversation needs, as definitions for a chat API."""
    picked = await who.scout.discover_tools(
        body.query,
        limit=body.limit,
        similarity_threshold=body.similarity_threshold,
        include_core_tools=body.include_core_tools,
        server_ids=body.servers,
        messages=body.messages,
        max_tokens=body.max_tokens,
        caller=who.caller,
    )
    definitions = picked.openai_tools() if body.format == "openai" else picked.anthropic_tools()
    return json_answer(
        {
            "tools": definitions,
            "keys": dict(picked.names),
            "metadata": {"tokens": picked.tokens, "tokens_saved": picked.tokens_saved, "format": body.format},
        }
    )


@router.post("/explain", responses=response_bodies.EXPLANATION, summary="Why is a tool found, or not?")
async def explain(body: ExplainBody, who: Operator) -> Response:
    """Say why a tool is, or is not, found: held back, switched off, denied by a rule, or its rank and score.

    With the filters and the ranker of a search it says what became of the tool in that search.
    """
    caller = who.in_place_of(body.user, body.tenant, body.groups)
    narrowed = SearchOptions(
        match=body.match,
        category=body.category,
        servers=body.servers or None,
        threshold=body.threshold,
        ranker=body.ranker,
    )
    explained = await explain_tool(who.scout, body.query, body.key, caller, tags=body.tags, options=narrowed)
    return json_answer(explained.to_dict())


@router.get("/tools", responses=response_bodies.TOOLS, summary="List tools")
async def list_tools(
    request: Request,
    who: Anyone,
    tag: Annotated[list[Name], Query(default_factory=list, max_length=100)],
    page: Page = 1,
    page_size: Annotated[int, Query(ge=1, le=100)] = 50,
    detail: Detail = "brief",
    category: Word = None,
    server: Word = None,
    match: Annotated[Match, Query(description="of the tags")] = "any",
    sort: Annotated[ToolSort, Query(description="a minus in front reverses the order")] = "key",
    text: Annotated[str, Query(max_length=200, description="words that must all occur")] = "",
) -> Response:
    """List the tools that the caller may see."""
    answer = await who.scout.list_tools(
        detail, category, server, page, page_size, tags=tag, match=match, sort=sort, text=text, caller=who.caller
    )
    return tagged_answer(request, answer.to_dict())


@router.get(
    "/inventory", responses=response_bodies.INVENTORY, tags=["operating"], summary="List all tools, in any state"
)
async def list_inventory(
    request: Request,
    who: Operator,
    page: Page = 1,
    page_size: PageSize = 100,
    text: Annotated[str, Query(max_length=200, description="words that must all occur")] = "",
    server: Word = None,
    category: Word = None,
    state: ToolState | None = None,
    sort: Annotated[InventorySort, Query(description="a minus in front reverses the order")] = "key",
    tenant: Word = None,
) -> Response:
    """List all tools of a tenant, also those that are switched off or withheld, with tokens, risk and state."""
    scope = Scope(tenant=tenant or who.caller.tenant)
    narrow = InventoryFilter(text=text, server=server, category=category, state=state, sort=sort)
    rows = await who.scout.decisions.inventory.rows(scope, narrow)
    return page_answer(request, "tools", rows, page, page_size)


@router.get("/categories", responses=response_bodies.CATEGORIES, summary="The categories")
async def list_categories(request: Request, who: Anyone, page: Page = 1, page_size: PageSize = 1_000) -> Response:
    """Count the tools of each category that the caller may see."""
    rows = await who.scout.list_categories(caller=who.caller)
    return page_answer(request, "categories", rows, page, page_size)


@router.get("/tags", responses=response_bodies.TAGS, summary="The tags")
async def list_tags(request: Request, who: Anyone, page: Page = 1, page_size: PageSize = 1_000) -> Response:
    """Count the tools of each tag that the caller may see, the most frequent first."""
    rows = await who.scout.list_tags(caller=who.caller)
    return page_answer(request, "tags", rows, page, page_size)
