"""Health checks for load balancers and metrics, on a port of their own: `/livez`, `/readyz` and `/metrics`.

A process that fails `/livez` should be restarted. One that fails `/readyz` should get no requests. A replica whose
database is down is unready but alive: it still answers from the loaded catalogue. The reasons are fixed texts, so
nothing about the database leaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolscout.errors import ToolscoutError
from toolscout.gateway.denied import DeniedLog
from toolscout.gateway.host_check import HostCheck, allowed_hosts
from toolscout.gateway.http_listener import bind, serve_in_background
from toolscout.scout import Scout
from toolscout.telemetry.exposition import CONTENT_TYPE

PING_S = 1.0
"""How long the store may take to answer a ping."""

_STOPPING = "the process is stopping"
_NO_STORE = "the store does not answer"
_NO_CATALOGUE = "no catalogue is loaded yet"


class Readiness:
    """Whether this replica should get requests, and if not, why."""

    def __init__(self, scout: Scout) -> None:
        self._scout = scout
        self._ping: asyncio.Task[bool] | None = None
        self._loaded = False
        self.stopping = False

    async def reasons(self) -> list[str]:
        """Return why it is not ready. The list is empty when the store answers and a catalogue is loaded."""
        if self.stopping:
            return [_STOPPING]
        reasons = [] if await self.store_answers() else [_NO_STORE]
        if not await self._has_catalogue():
            reasons.append(_NO_CATALOGUE)
        return reasons

    async def store_answers(self) -> bool:
        """Ping the store within PING_S. Probes at the same time share one ping."""
        if self._ping is None or self._ping.done():
            self._ping = asyncio.create_task(self._ping_store())
        done, _ = await asyncio.wait({self._ping}, timeout=PING_S)
        return bool(done) and self._ping.result()

    async def _ping_store(self) -> bool:
        try:
            await self._scout.ping()
        except ToolscoutError:
            return False
        return True

    async def _has_catalogue(self) -> bool:
        if not self._loaded:
            try:
                async with asyncio.timeout(PING_S):
                    await self._scout.overview()
                self._loaded = True
            except (ToolscoutError, TimeoutError):
                return False
        return True


@asynccontextmanager
async def serve_diagnostics(
    readiness: Readiness, metrics: Callable[[], Awaitable[bytes]], *, host: str, port: int
) -> AsyncIterator[int]:
    """Serve the diagnostics until the end of the block. Yield the port."""

    async def livez(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def readyz(_request: Request) -> JSONResponse:
        reasons = await readiness.reasons()
        body = {"status": "unready" if reasons else "ok", "reasons": reasons}
        return JSONResponse(body, status_code=503 if reasons else 200)

    async def metrics_page(_request: Request) -> Response:
        return Response(await metrics(), headers={"Content-Type": CONTENT_TYPE})

    routes = {"/livez": livez, "/readyz": readyz, "/metrics": metrics_page}
    with bind(host, port) as listener:
        port = listener.getsockname()[1]
        app = Starlette(
            routes=[Route(path, endpoint, methods=["GET"]) for path, endpoint in routes.items()],
            middleware=[Middleware(DeniedLog), Middleware(HostCheck, allowed=allowed_hosts(host, port))],
        )
        async with serve_in_background(app, listener):
            yield port
