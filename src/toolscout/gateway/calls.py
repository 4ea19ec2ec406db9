"""Calls through the gateway: one key, one call, the server's own result passed on as it came."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolscout.errors import CallError
from toolscout.execution.shape import shape_result, size_of
from toolscout.gateway.parked import STATE, Parked
from toolscout.gateway.peers import Peer
from toolscout.gateway.results import Results
from toolscout.models import Caller, CallResult
from toolscout.ports import Upstream
from toolscout.scout import Scout
from toolscout.settings import Settings

NoteLinks = Callable[[str, Mapping[str, Any], Caller], None]
Send = Callable[[Upstream, Mapping[str, Any]], Awaitable[CallResult]]

REPAIRS = "toolscout/repairs"
_RESERVED = "io.modelcontextprotocol/"
_MOST_ROUNDS = 16


class Calls:
    """Makes calls for agents of both eras and keeps their results within the byte cap."""

    def __init__(self, scout: Scout, settings: Settings, results: Results, note_links: NoteLinks) -> None:
        """Take where to call, the cap, where whole results are kept, and who is told of the links in a result."""
        self._scout = scout
        self._max_bytes = settings.max_result_bytes
        self._results = results
        self._note_links = note_links
        self._parked = Parked()

    async def call(
        self,
        key: str,
        arguments: Any,
        *,
        peer: Peer,
        caller: Caller,
        params: Mapping[str, Any],
        version: str | None = None,
        read_only: bool = False,
    ) -> dict[str, Any]:
        """Call a tool; `params` are those of the agent's own request, for what has to travel with the call."""
        extra = _extra(params)

        async def send(upstream: Upstream, extra: Mapping[str, Any]) -> CallResult:
            return await self._scout.call_tool(
                key, arguments, version=version, read_only=read_only, caller=caller, upstream=upstream, extra=extra
            )

        state = params.get("requestState")
        if isinstance(state, str) and state.startswith(STATE):
            made = await self._parked.resume(key, state, params.get("inputResponses"), peer, caller)
        elif not peer.modern:
            made = await _rounds(send, peer, extra)
        elif peer.answers:
            made = await self._parked.start(key, lambda call: send(call, extra), peer, caller)
        else:
            made = await send(peer, extra)
        return self._finished(made, caller) if isinstance(made, CallResult) else made

    def close(self) -> None:
        """End every call that waits for an answer."""
        self._parked.close()

    def _finished(self, made: CallResult, caller: Caller) -> dict[str, Any]:
        result = dict(made.result)
        self._note_links(made.tool.server, result, caller)
        if made.repairs:
            result["_meta"] = {**(result.get("_meta") or {}), REPAIRS: list(made.repairs)}
        if size_of(result) > self._max_bytes:
            return shape_result(result, self._max_bytes, self._results.keep(result, caller))
        return result


async def _rounds(send: Send, peer: Peer, extra: Mapping[str, Any]) -> CallResult:
    """Call for a client of the handshake era: a server of 2026 that needs input is answered by asking the client."""
    for _ in range(_MOST_ROUNDS):
        made: CallResult = await send(peer, extra)
        if made.result.get("resultType") != "input_required":
            return made
        requests = made.result.get("inputRequests") or {}
        responses = {
            name: await peer.ask(str(request.get("method")), request.get("params") or {})
            for name, request in requests.items()
        }
        extra = {**extra, "inputResponses": responses}
        if made.result.get("requestState") is not None:
            extra["requestState"] = made.result["requestState"]
    raise CallError(f"the server asked for input {_MOST_ROUNDS} times", hint="call it again with all it needs")


def _extra(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what travels with a call: replies to a server's questions, and the agent's own `_meta`."""
    extra = {name: params[name] for name in ("inputResponses", "requestState") if name in params}
    meta = params.get("_meta")
    if isinstance(meta, Mapping):
        own = {
            name: value for name, value in meta.items() if name != "progressToken" and not name.startswith(_RESERVED)
        }
        if own:
            extra["_meta"] = own
    return extra
