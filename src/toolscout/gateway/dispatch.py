"""`tools/call`: which tool of the surface is meant, what it is given, and how its answer or error is written."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from toolscout.discovery.suggest import did_you_mean
from toolscout.errors import CallError, InvalidArgumentsError, ToolscoutError, to_wire
from toolscout.execution.validate import validate_arguments
from toolscout.gateway.calls import REPAIRS, Calls
from toolscout.gateway.door import to_protocol
from toolscout.gateway.listing import Listing, Listings
from toolscout.gateway.peers import Peer
from toolscout.gateway.registry import FINDERS, invoked_key
from toolscout.gateway.tools import DISCOVERY
from toolscout.models import Caller, Tool
from toolscout.scout import Scout

_log = logging.getLogger("toolscout")


_ENVELOPE = frozenset({"name", "arguments", "version", "server_name", "tool_name", "mcp_registry_url"})


class Dispatch:
    """Calls the tools that a listing shows, and no others."""

    def __init__(self, scout: Scout, calls: Calls) -> None:
        """Discover with the scout, call with `calls`."""
        self._scout = scout
        self._calls = calls

    async def call(self, listings: Listings, peer: Peer, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Answer one request; an error is a result that says what to do next."""
        name = str(params["name"])
        try:
            if name in listings.calls:
                return await self._by_key(name, peer, params, caller)
            listing = await listings.of(caller)
            if name not in listing.schemas:
                self._scout.admin.note_unlisted(caller, name, params.get("arguments"))
                raise _unknown(name)
            if name in listing.passed:
                return await self._pass(name, peer, params, caller)
            return await self._own(name, listing, peer, params, caller)
        except ToolscoutError as error:
            return failed(error)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - a bug of ours is told without its detail, never on the wire
            _log.exception("%s failed", name)
            return failed(error)

    async def _pass(self, key: str, peer: Peer, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Call a tool that is listed under its key: here a server's own error stays what it is."""
        try:
            return await self._calls.call(key, params.get("arguments"), peer=peer, caller=caller, params=params)
        except CallError as error:
            if isinstance(error.details.get("code"), int):
                raise to_protocol(error) from error
            raise

    async def _by_key(self, name: str, peer: Peer, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        given = params.get("arguments") or {}
        key = _text(given, "name")
        version = _text(given, "version", required=False)
        return await self._through(key, given, peer, params, caller, version, read_only=name == "call_read_tool")

    async def _own(
        self, name: str, listing: Listing, peer: Peer, params: Mapping[str, Any], caller: Caller
    ) -> dict[str, Any]:
        given = params.get("arguments") or {}
        own = Tool(key=name, id=name, server="", server_title="", name=name, input_schema=listing.schemas[name])
        arguments, repairs = validate_arguments(own, given)
        if name == "invoke_mcp_tool":
            return await self._through(invoked_key(arguments), arguments, peer, params, caller)
        if name in FINDERS:
            found = await FINDERS[name](self._scout, arguments, caller)
            return answered({"result": found}, text=found, repairs=repairs)
        _refuse_unknown(name, arguments, listing.schemas[name]["properties"])
        return answered(await DISCOVERY[name](self._scout, arguments, caller), repairs=repairs)

    async def _through(
        self,
        key: str,
        given: Mapping[str, Any],
        peer: Peer,
        params: Mapping[str, Any],
        caller: Caller,
        version: str | None = None,
        *,
        read_only: bool = False,
    ) -> dict[str, Any]:
        arguments, repairs = _inner(given)
        result = await self._calls.call(
            key, arguments, peer=peer, caller=caller, params=params, version=version, read_only=read_only
        )
        return _with_repairs(result, repairs)


def _unknown(name: str) -> MCPError:
    """Say that no such tool is listed, in the same words whether or not it exists behind the gateway."""
    hint = "tools/list shows the tools here; others are found by search_tools, called by call_tool"
    return MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name[:200]}", data={"hint": hint})


def _refuse_unknown(name: str, arguments: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse a parameter that we do not have: a filter that is misspelt must not pass for none."""
    for given in arguments if known else ():
        if given not in known:
            raise InvalidArgumentsError(
                f"{name} has no parameter {given!r}",
                hint=f"it takes {', '.join(known)}",
                suggestions=did_you_mean(given, known),
            )


def _inner(given: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Return the arguments of the inner call; those that were put beside the key are gathered."""
    beside = {name: value for name, value in given.items() if name not in _ENVELOPE}
    if "arguments" in given or not beside:
        return given.get("arguments"), ()
    return beside, ("arguments stood beside the name; they are gathered now",)


def _with_repairs(result: dict[str, Any], repairs: tuple[str, ...]) -> dict[str, Any]:
    if not repairs:
        return result
    meta = result.get("_meta") or {}
    return {**result, "_meta": {**meta, REPAIRS: [*repairs, *meta.get(REPAIRS, ())]}}


def answered(structured: Mapping[str, Any], *, text: Any = None, repairs: tuple[str, ...] = ()) -> dict[str, Any]:
    """Write an answer: structured content, and the same as compact text for hosts that show only that."""
    shown = structured if text is None else text
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": _compact(shown)}],
        "structuredContent": dict(structured),
    }
    if repairs:
        result["_meta"] = {REPAIRS: list(repairs)}
    return result


def failed(error: BaseException) -> dict[str, Any]:
    """Write an error as a result: what happened, and what to do next, for the model to read."""
    body = to_wire(error)
    return {"content": [{"type": "text", "text": _compact(body)}], "structuredContent": body, "isError": True}


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _text(given: Any, name: str, *, required: bool = True) -> str:
    value = given.get(name) if isinstance(given, Mapping) else None
    if isinstance(value, str) and (value or not required):
        return value
    if value is None and not required:
        return ""
    raise InvalidArgumentsError(
        f"{name} must be text: the {'key of a tool' if name == 'name' else 'version of a hit'}",
        hint='give {"name": "<server>__<tool>", "arguments": {...}}; search_tools finds keys; nothing was sent',
    )
