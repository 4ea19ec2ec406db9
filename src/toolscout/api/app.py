"""The application of the REST API: its routes, its description, and what every request passes."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from toolscout.api import discovery_routes, event_routes, operator_routes, semantic_search, server_routes, tool_routes
from toolscout.api.callers import RequesterResolver
from toolscout.api.event_routes import EventStreams
from toolscout.api.openapi import complete_description
from toolscout.api.problems import RefusalProblems, add_problem_handlers
from toolscout.api.query_parameters import check_parameters
from toolscout.api.server_editor import ServerEditor
from toolscout.api.writes import Writes
from toolscout.gateway.connect import public_origin
from toolscout.scout import Scout
from toolscout.scout.activity import Activity
from toolscout.settings import Settings
from toolscout.telemetry import audit_file

PREFIX = "/api/v1"
_DESCRIPTION = (
    "Find and call the tools of many MCP servers, and operate the gateway in front of them. Callers send the same API "
    "key or token as MCP clients (`Authorization: Bearer ...`). Errors are problem documents (RFC 9457)."
)


class RestApi:
    """Makes the application. It is the same for every way in: with a key, a token, or a session of the console."""

    def __init__(
        self, scout: Scout, settings: Settings, *, authenticated: bool, editor: ServerEditor | None = None
    ) -> None:
        """Take the catalogue. Without an editor, servers cannot be changed."""
        app = FastAPI(
            title="Toolscout",
            version=version("toolscout"),
            description=_DESCRIPTION,
            openapi_url=f"{PREFIX}/openapi.json",
            docs_url=None,
            redoc_url=None,
            separate_input_output_schemas=False,
            generate_unique_id_function=_operation_id,
        )
        app.state.requesters = RequesterResolver(
            scout, authenticated=authenticated, operator_scope=settings.operator_scope
        )
        app.state.editor = editor
        app.state.public_origin = public_origin(settings)
        app.state.activity = Activity(audit_file(settings.audit))
        app.state.streams = self._streams = EventStreams()
        app.include_router(discovery_routes.quick_router, prefix=PREFIX)
        for module in (discovery_routes, tool_routes, server_routes, operator_routes, event_routes):
            app.include_router(module.router, prefix=PREFIX, dependencies=[Depends(check_parameters)])
        app.include_router(semantic_search.router)
        add_problem_handlers(app)
        complete_description(app)
        self.app: ASGIApp = Writes(tool_routes.SlashesInKeys(app), settings.max_body_bytes)
        """The application, for requests whose caller is known: all paths under `/api`."""

    def end_streams(self) -> None:
        """End the streams of events, so that a stop need not wait for them."""
        self._streams.stopping.set()

    def behind(self, protect: Callable[[ASGIApp], ASGIApp]) -> ASGIApp:
        """Return the application behind the authentication of a gateway."""
        return RefusalProblems(protect(self.app))


def _operation_id(route: APIRoute) -> str:
    return route.name
