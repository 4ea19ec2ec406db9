"""Routes about servers: their state, and for operators adding, changing, removing, restarting and refreshing them."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from toolscout.api import response_bodies
from toolscout.api.callers import Anyone, Operator, Requester
from toolscout.api.json_answers import Page, PageSize, json_answer, page_answer, tagged_answer
from toolscout.api.request_bodies import ServerBody, ServersBody
from toolscout.api.server_editor import ServerEditor
from toolscout.config import ServerConfig
from toolscout.errors import ConflictError, UnknownServerError
from toolscout.models import ServerStatus
from toolscout.suggestions import did_you_mean

router = APIRouter(tags=["servers"])

Key = Annotated[str, Path(max_length=256, description="the slug of a server, as in the keys of its tools")]


@router.get("/servers", responses=response_bodies.SERVERS, summary="List servers")
async def list_servers(request: Request, who: Anyone, page: Page = 1, page_size: PageSize = 100) -> Response:
    """List the servers with a tool that the caller may see, and their state. Operators see all servers."""
    return page_answer(request, "servers", await server_rows(who), page, page_size)


async def server_rows(who: Requester) -> list[dict[str, Any]]:
    """Return the servers that a caller reaches, with their state."""
    waiting = await who.changes_waiting()
    return [_row(status, who, waiting) for status in await who.visible_servers()]


@router.post("/servers", status_code=201, responses=response_bodies.ADDED, summary="Add servers")
async def add_servers(request: Request, body: ServersBody, _who: Operator) -> Response:
    """Add servers to the config file, as agent hosts write them. They are connected at once.

    Their word on which tools only read does not count unless the entry has `"toolscout": {"trusted": true}`.
    """
    return json_answer({"changed": await _editor(request).add(body.servers)}, 201)


@router.get("/servers/{key}", responses=response_bodies.SERVER, summary="The state of a server")
async def get_server(request: Request, key: Key, who: Anyone) -> Response:
    """Return the state of a server, and for operators its entry in the config file, without secrets."""
    row = _row(await _find(key, who), who, await who.changes_waiting())
    config = who.scout.servers.config_of(key)
    editor: ServerEditor | None = request.app.state.editor
    if who.operator and config is not None and editor is not None:
        row["entry"] = await editor.entry(config)
    return tagged_answer(request, row)


@router.put("/servers/{key}", responses=response_bodies.CHANGED, summary="Change a server")
async def replace_server(request: Request, key: Key, body: ServerBody, who: Operator) -> Response:
    """Replace the entry of a server in its config file. It is connected again if that is necessary.

    A secret that is sent back as `***`, where it was shown so, stays as it is.
    """
    await _editor(request).replace(key, await _configured(key, who), body.entry)
    return json_answer({"changed": [key]})


@router.delete("/servers/{key}", responses=response_bodies.CHANGED, summary="Remove a server")
async def remove_server(request: Request, key: Key, who: Operator) -> Response:
    """Remove a server from its config file. Its tools, and the accounts of people at it, are removed too."""
    await _editor(request).remove(key, await _configured(key, who))
    return json_answer({"changed": [key]})


@router.post("/servers/{key}/enable", responses=response_bodies.CHANGED, summary="Enable a server")
async def enable_server(request: Request, key: Key, who: Operator) -> Response:
    """Use a server again that was disabled."""
    await _editor(request).switch(key, await _configured(key, who), enabled=True)
    return json_answer({"changed": [key]})


@router.post("/servers/{key}/disable", responses=response_bodies.CHANGED, summary="Disable a server")
async def disable_server(request: Request, key: Key, who: Operator) -> Response:
    """Stop using a server. It stays in the config file."""
    await _editor(request).switch(key, await _configured(key, who), enabled=False)
    return json_answer({"changed": [key]})


@router.post("/servers/{key}/restart", responses=response_bodies.CHANGED, summary="Restart a server")
async def restart_server(key: Key, who: Operator) -> Response:
    """End the sessions and processes of a server, and connect again."""
    await _find(key, who)
    await who.scout.servers.restart(key)
    who.scout.access.record_act("servers.restart", key)
    return json_answer({"changed": [key]})


@router.post("/servers/{key}/refresh", responses=response_bodies.CHANGED, summary="List a server's tools again")
async def refresh_server(key: Key, who: Operator) -> Response:
    """List the tools of a server again, in the background."""
    await _find(key, who)
    who.scout.servers.list_again(key)
    who.scout.access.record_act("servers.refresh", key)
    return json_answer({"changed": [key]})


@router.get("/servers/{key}/log", responses=response_bodies.LOG, summary="What a server printed")
async def get_server_log(request: Request, key: Key, who: Operator) -> Response:
    """Return the end of what a server printed on its standard error. Secrets of the config are hidden in it."""
    return tagged_answer(request, {"key": key, "text": (await _find(key, who)).stderr})


async def _find(key: str, who: Requester) -> ServerStatus:
    """Return the status of a server that the caller reaches. One that they do not reach looks like none."""
    statuses = {status.server: status for status in await who.visible_servers()}
    if key not in statuses:
        raise UnknownServerError(
            f"there is no server {key!r}",
            hint="GET /api/v1/servers lists them",
            suggestions=did_you_mean(key, statuses),
        )
    return statuses[key]


async def _configured(key: str, who: Requester) -> ServerConfig:
    await _find(key, who)
    config = who.scout.servers.config_of(key)
    if config is None:
        raise ConflictError(f"{key} is not in a config file; nothing was changed", hint="change it where it is made")
    return config


def _editor(request: Request) -> ServerEditor:
    editor: ServerEditor | None = request.app.state.editor
    if editor is None:
        raise ConflictError("this gateway has no config file to change", hint="start it with --config mcp.json")
    return editor


def _row(status: ServerStatus, who: Requester, waiting: Counter[str] | None) -> dict[str, Any]:
    config = who.scout.servers.config_of(status.server)
    row: dict[str, Any] = {
        "key": status.server,
        "title": status.title,
        "state": status.state,
        "hint": status.hint,
        "tools": status.tools,
        "users_sign_in": config is not None and config.users_sign_in,
    }
    if not who.operator:
        return row
    row |= {"detail": status.detail, "protocol": status.protocol, "since": status.since}
    if waiting is not None:
        row["waiting"] = waiting[status.server]
    if config is not None:
        row |= {
            "transport": config.transport,
            "command": config.command,
            "source": config.source,
            "trusted": config.trusted,
            "per_user": config.per_user,
        }
    return row
