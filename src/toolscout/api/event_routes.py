"""What happens now, as server-sent events: servers that come and go, a new catalogue, and each call."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from toolscout.api import response_bodies
from toolscout.api.callers import Anyone, Requester
from toolscout.api.server_routes import server_rows
from toolscout.errors import LimitError
from toolscout.gateway.identity import Owner, owner_of
from toolscout.scout.activity import Activity, ActivityFilter

router = APIRouter(tags=["discovery"])

STREAM_S = 300.0
"""How long a stream lasts. The client opens it again, so that a revoked key does not follow for longer."""

_LOOK_S = 0.7
_KEEP_ALIVE_S = 15.0
_MOST_STREAMS = 20


class EventStreams:
    """The open streams, which end when the gateway stops."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.open: Counter[Owner] = Counter()


@router.get("/events", responses=response_bodies.EVENTS, summary="Follow what happens")
async def follow_events(request: Request, who: Anyone) -> StreamingResponse:
    """Send `servers` and `catalogue` when they change, and for operators `activity`, a line of the audit log each."""
    streams: EventStreams = request.app.state.streams
    if streams.open[owner_of(who.caller)] >= _MOST_STREAMS:
        raise LimitError(
            f"{_MOST_STREAMS} streams are open, which is the limit of a key or user",
            hint="close some of them",
            details={"retry_after_s": int(STREAM_S)},
        )
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    body = _events(streams, request.app.state.activity, who)
    return StreamingResponse(body, headers=headers, media_type="text/event-stream")


async def _events(streams: EventStreams, activity: Activity, who: Requester) -> AsyncIterator[str]:
    owner = owner_of(who.caller)
    streams.open[owner] += 1
    try:
        ends, spoke = time.monotonic() + STREAM_S, time.monotonic()
        watched = _Watched(who)
        before: dict[str, Any] = {}
        _, count = await activity.after(None, ActivityFilter())
        while time.monotonic() < ends and not streams.stopping.is_set():
            now = await watched.look()
            events = [(name, body) for name, body in now.items() if body != before.get(name)]
            if who.operator:
                lines, count = await activity.after(count, ActivityFilter())
                events += [("activity", line) for line in lines]
            for name, body in events:
                yield f"event: {name}\ndata: {json.dumps(body, default=str)}\n\n"
            if events or time.monotonic() - spoke > _KEEP_ALIVE_S:
                yield ": still here\n\n"
                before, spoke = now, time.monotonic()
            with suppress(TimeoutError):
                await asyncio.wait_for(streams.stopping.wait(), _LOOK_S)
    finally:
        streams.open[owner] -= 1


class _Watched:
    """The servers and the totals that a caller reaches, which may be others than a moment ago."""

    def __init__(self, who: Requester) -> None:
        self._who = who
        self._seen: object = None
        self._state: dict[str, Any] = {}

    async def look(self) -> dict[str, Any]:
        """Return them as they are now. They are written again only if something has changed."""
        scout = self._who.scout
        who = replace(self._who, caller=scout.narrow(replace(self._who.caller, servers=None)))
        overview = await scout.overview(caller=who.caller)
        seen = (overview, scout.servers.statuses(), scout.access.policy_version)
        if seen != self._seen:
            catalogue = {"tools": overview.total, "generation": overview.generation, "stale": overview.stale}
            self._state = {"servers": {"servers": await server_rows(who)}, "catalogue": catalogue}
            self._seen = seen
        return self._state
