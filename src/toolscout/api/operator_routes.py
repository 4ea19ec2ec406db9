"""Routes for operators: switches, decisions about definitions, keys, the policy, activity, figures, totals."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from toolscout.api import response_bodies
from toolscout.api.callers import Anyone, Operator
from toolscout.api.json_answers import Page, PageSize, json_answer, page_answer, tagged_answer
from toolscout.api.request_bodies import DecisionBody, EvaluateBody, KeyBody, Name, SwitchBody
from toolscout.definition_diff import change_row
from toolscout.models import ApiKey, Caller, Scope
from toolscout.retrieval_metrics import LabelledQuery, summarize
from toolscout.scout.activity import Activity, ActivityFilter
from toolscout.scout.evaluation import measure_queries
from toolscout.tool_keys import split_key

router = APIRouter(tags=["operating"])

Tenant = Annotated[str | None, Query(min_length=1, max_length=256)]
Word = Annotated[str | None, Query(max_length=256)]
KeyId = Annotated[str, Path(pattern=r"^(tsk_)?[a-z0-9]{1,20}$")]

_DAY_S = 86_400


@router.post("/tools/switch", responses=response_bodies.CHANGED, summary="Switch tools on or off")
async def switch_tools(body: SwitchBody, who: Operator) -> Response:
    """Switch tools on or off for everyone, all or none of them. The decision survives re-indexing."""
    await who.scout.decisions.switch(Scope(tenant=body.tenant or who.caller.tenant), body.keys, body.enabled)
    return json_answer({"changed": body.keys})


@router.get("/changes", responses=response_bodies.CHANGES, summary="Definitions that wait for a decision")
async def list_changes(
    request: Request,
    who: Operator,
    tenant: Tenant = None,
    server: Word = None,
    decided: Annotated[bool, Query(description="also tools that were kept out and have not changed since")] = False,
    page: Page = 1,
    page_size: PageSize = 100,
) -> Response:
    """List tools whose definition changed since it was first seen or approved, and tools in quarantine."""
    changes = await who.scout.decisions.inventory.changes()
    rows = [
        item
        for item in changes
        if tenant in (None, item.scope.tenant) and server in (None, split_key(item.key)[0]) and (decided or item.waits)
    ]
    return page_answer(request, "changes", [change_row(item) for item in rows], page, page_size)


@router.post("/changes", responses=response_bodies.CHANGED, summary="Approve definitions, or keep tools out")
async def decide_changes(body: DecisionBody, who: Operator) -> Response:
    """Approve definitions as they were shown (`KEY@VERSION`), or withhold tools from everyone."""
    scope = Scope(tenant=body.tenant or who.caller.tenant, owner=body.user)
    tools = await who.scout.decisions.decide(scope, body.keys, body.verdict)
    return json_answer({"changed": [tool.key for tool in tools]})


@router.get("/keys", responses=response_bodies.KEYS, summary="List API keys")
async def list_keys(
    request: Request, who: Operator, tenant: Tenant = None, page: Page = 1, page_size: PageSize = 100
) -> Response:
    """List keys, newest first, without their secrets."""
    rows = [_key_row(key) for key in await who.scout.api_keys.list_all(tenant)]
    return page_answer(request, "keys", rows, page, page_size)


@router.post("/keys", status_code=201, responses=response_bodies.KEY_CREATED, summary="Create an API key")
async def create_key(body: KeyBody, who: Operator) -> Response:
    """Create a key. It is shown once."""
    expires_at = time.time() + body.expires_in_days * _DAY_S if body.expires_in_days else None
    text, key = await who.scout.api_keys.create(
        tenant=body.tenant,
        user=body.user,
        groups=body.groups,
        scopes=body.scopes,
        note=body.note,
        expires_at=expires_at,
    )
    return json_answer({"key": text, **_key_row(key)}, 201)


@router.post("/keys/{key_id}/revoke", responses=response_bodies.KEY, summary="Revoke an API key")
async def revoke_key(key_id: KeyId, who: Operator) -> Response:
    """Revoke a key. Every gateway on the same store refuses it within about a second."""
    return json_answer(_key_row(await who.scout.api_keys.revoke(key_id.removeprefix("tsk_"))))


@router.post(
    "/keys/{key_id}/rotate", status_code=201, responses=response_bodies.KEY_CREATED, summary="Replace an API key"
)
async def rotate_key(key_id: KeyId, who: Operator) -> Response:
    """Revoke a key and create another one for the same caller. It is shown once."""
    text, key = await who.scout.api_keys.rotate(key_id.removeprefix("tsk_"))
    return json_answer({"key": text, **_key_row(key)}, 201)


@router.get("/policy/check", responses=response_bodies.POLICY, summary="What may a caller do with a tool?")
async def check_policy(
    who: Operator,
    key: Annotated[str, Query(min_length=1, max_length=400)],
    group: Annotated[list[Name], Query(default_factory=list, max_length=100)],
    user: Annotated[str | None, Query(min_length=1, max_length=256)] = None,
    tenant: Tenant = None,
) -> Response:
    """Say whether a caller may see and call a tool, and which rule decides."""
    caller = who.scout.narrow(Caller(tenant=tenant or who.caller.tenant, user=user, groups=frozenset(group)))
    see = await who.scout.access.explain(caller, key, "see")
    call = await who.scout.access.explain(caller, key, "call")
    return json_answer(
        {
            "tool": key,
            "see": {"allowed": see.allowed, "because": see.because},
            "call": {"allowed": call.allowed, "because": call.because},
            "suggestions": list(see.suggestions),
        }
    )


@router.get("/activity", responses=response_bodies.ACTIVITY, summary="The last calls and acts")
async def list_activity(
    request: Request,
    _who: Operator,
    tenant: Word = None,
    user: Word = None,
    tool: Annotated[str | None, Query(max_length=256, description="a part of the key")] = None,
    act: Word = None,
    outcome: Word = None,
    page: Page = 1,
    page_size: PageSize = 100,
) -> Response:
    """Return lines of the audit log of this gateway, newest first: who called what, the shape of the arguments, when.

    Only the end of a long log is read. `outcomes` are those that occur there, in any line.
    """
    activity: Activity = request.app.state.activity
    lines = await activity.last(ActivityFilter(tenant=tenant, user=user, tool=tool, act=act, outcome=outcome))
    more = {"recorded": activity.recorded, "outcomes": activity.outcomes()}
    return page_answer(request, "lines", lines, page, page_size, **more)


@router.post("/eval", responses=response_bodies.FIGURES, summary="Measure retrieval quality")
async def evaluate(body: EvaluateBody, who: Operator) -> Response:
    """Measure the ranking on labelled requests, over the catalogue as it is. Tools are named by their keys."""
    queries = [
        LabelledQuery(id=row.id or str(number), query=row.query, gold=frozenset(row.gold), also=frozenset(row.also))
        for number, row in enumerate(body.rows, start=1)
    ]
    outcomes = await measure_queries(who.scout, queries, ranker=body.ranker, k=body.k, caller=who.caller, by_key=True)
    overview = await who.scout.overview(caller=who.caller)
    rows = [
        {
            "id": item.labelled.id,
            "rank": next((n for n, key in enumerate(item.tool_ids, start=1) if item.is_right(key)), None),
            "first": item.tool_ids[0] if item.tool_ids else None,
            "fit": item.fit,
        }
        for item in outcomes
    ]
    return json_answer({"figures": summarize(outcomes, overview.total, body.k, lenient=body.lenient), "rows": rows})


@router.get("/caller", responses=response_bodies.CALLER, tags=["discovery"], summary="Who asks?")
async def get_caller(request: Request, who: Anyone) -> Response:
    """Return who the caller is, and whether they operate this gateway."""
    return tagged_answer(request, {"tenant": who.caller.tenant, "user": who.caller.user, "operator": who.operator})


@router.get("/stats", responses=response_bodies.STATS, tags=["discovery"], summary="Totals")
async def get_stats(request: Request, who: Anyone) -> Response:
    """Return the totals of what the caller may see, and who they are. Operators also get what waits, and the calls."""
    overview = await who.scout.overview(caller=who.caller)
    body: dict[str, Any] = {
        "tools": overview.total,
        "tokens": overview.tokens,
        "stale": overview.stale,
        "servers": dict(Counter(status.state for status in await who.visible_servers())),
        "operator": who.operator,
        "tenant": who.caller.tenant,
        "user": who.caller.user,
    }
    if who.operator:
        activity: Activity = request.app.state.activity
        lines = await activity.last(ActivityFilter(act="call"))
        waiting = await who.changes_waiting()
        if waiting is not None:
            body["changes_waiting"] = waiting.total()
        body["tokens_saved"] = int(who.scout.metrics.tokens_saved.total)
        body["calls"] = {"last": len(lines), "failed": sum(line.get("outcome") != "ok" for line in lines)}
    return tagged_answer(request, body)


def _key_row(key: ApiKey) -> dict[str, Any]:
    row = {name: value for name, value in asdict(key).items() if name != "digest"}
    state = "revoked" if key.revoked_at is not None else "good" if key.usable(time.time()) else "expired"
    return {**row, "groups": list(key.groups), "scopes": list(key.scopes), "state": state}
