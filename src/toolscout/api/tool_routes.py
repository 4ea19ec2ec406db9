"""Routes about single tools: their definition, what goes with them, calling them, and saying whether one helped."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import APIRouter, Path, Query, Request
from pydantic import AfterValidator
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscout.api import response_bodies
from toolscout.api.callers import Anyone
from toolscout.api.json_answers import json_answer, tagged_answer
from toolscout.api.request_bodies import CallBody, FeedbackBody

router = APIRouter(tags=["tools"])

_SLASH = "\x1f"
"""What stands for an encoded slash in a path. Names of tools have no control characters."""

Key = Annotated[
    str,
    Path(min_length=1, max_length=400, description="`<server>__<tool>`"),
    AfterValidator(lambda key: key.replace(_SLASH, "/")),
]


class SlashesInKeys:
    """Middleware that keeps an encoded slash in a path apart from one that separates its parts.

    Names of tools may contain slashes. Without this, `a%2Fcall` would be the route that calls `a`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        raw = scope.get("raw_path", b"").upper()
        if b"%2F" in raw:
            path = scope["raw_path"].decode("ascii").replace("%2F", "%1F").replace("%2f", "%1F")
            scope = {**scope, "path": unquote(path)}
        await self._app(scope, receive, send)


@router.get("/tools/{key}/related", responses=response_bodies.TOOLS, summary="Tools that go with a tool")
async def get_related_tools(
    request: Request, key: Key, who: Anyone, limit: Annotated[int, Query(ge=1, le=100)] = 5
) -> Response:
    """Return related tools, each with its relation."""
    return tagged_answer(request, (await who.scout.get_related_tools(key, limit, caller=who.caller)).to_dict())


@router.get("/tools/{key}", responses=response_bodies.TOOLS, summary="The full definition of a tool")
async def get_tool(request: Request, key: Key, who: Anyone) -> Response:
    """Return the description, the input schema and the examples of a tool."""
    return tagged_answer(request, (await who.scout.get_tool_details(key, caller=who.caller)).to_dict())


@router.post("/tools/{key}/call", responses=response_bodies.CALL, summary="Call a tool")
async def call_tool(key: Key, body: CallBody, who: Anyone) -> Response:
    """Call a tool once. Policy, limits, audit and the check of the arguments are those of MCP clients.

    Send an `Idempotency-Key` to be able to repeat a request whose answer was lost without calling the tool again.
    """
    result = await who.scout.call_tool(
        key, body.arguments, version=body.version, read_only=body.read_only, caller=who.caller
    )
    return json_answer(
        {
            "key": result.tool.key,
            "version": result.tool.version,
            "is_error": result.is_error,
            "result": dict(result.result),
            "repairs": list(result.repairs),
            "took_ms": round(result.took_ms, 3),
        }
    )


@router.post("/feedback", status_code=202, responses=response_bodies.FEEDBACK, summary="Say whether a tool helped")
async def give_feedback(body: FeedbackBody, who: Anyone) -> Response:
    """Record whether a tool did what a request asked for. It is kept in the audit log, and changes no ranking yet."""
    await who.scout.access.record_feedback(who.caller, body.query, body.key, success=body.success)
    return json_answer({"recorded": True}, 202)
