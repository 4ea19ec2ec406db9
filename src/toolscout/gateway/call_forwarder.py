"""Calls of downstream tools: each is forwarded once, and the server's result is returned unchanged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolscout.compact_json import result_json, result_size
from toolscout.errors import CallError, SignInRequiredError, ToolNotFoundError
from toolscout.gateway.client import RequestClient
from toolscout.gateway.pending_calls import STATE_PREFIX, PendingCalls
from toolscout.gateway.result_store import ResultStore, cut_result
from toolscout.gateway.sign_in_question import SignInQuestions
from toolscout.mcp_tools import meta_with_repairs
from toolscout.models import Caller, CallResult
from toolscout.ports import Upstream
from toolscout.scout import Scout
from toolscout.settings import Settings

NoteLinks = Callable[[str, Mapping[str, Any], Caller], None]
Send = Callable[[Upstream, Mapping[str, Any]], Awaitable[CallResult]]

_RESERVED = "io.modelcontextprotocol/"
_MAX_QUESTIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """One `tools/call` request, as the handler of a tool gets it."""

    scout: Scout
    forwarder: CallForwarder
    client: RequestClient
    caller: Caller
    params: Mapping[str, Any]

    @property
    def max_bytes(self) -> int:
        """How many bytes its result may have."""
        return self.forwarder.max_bytes

    async def forward(
        self, key: str, arguments: Any, *, version: str | None = None, read_only: bool = False
    ) -> dict[str, Any]:
        """Call a downstream tool by its key, as the caller of this request."""
        return await self.forwarder.forward(self, key, arguments, version=version, read_only=read_only)


class CallForwarder:
    """Forwards calls for clients of both protocol eras, and cuts results that exceed the byte limit."""

    def __init__(
        self,
        scout: Scout,
        settings: Settings,
        results: ResultStore,
        note_links: NoteLinks,
        sign_ins: SignInQuestions,
    ) -> None:
        self._scout = scout
        self._sign_ins = sign_ins
        self.max_bytes = settings.max_result_bytes
        self._results = results
        self._note_links = note_links
        self._pending = PendingCalls()

    async def forward(
        self, request: ToolRequest, key: str, arguments: Any, *, version: str | None, read_only: bool
    ) -> dict[str, Any]:
        """Call a tool. The client's replies to questions and its `_meta` are forwarded with the call."""
        client, caller, params = request.client, request.caller, request.params
        extra = _extra(params)

        async def call(upstream: Upstream, extra: Mapping[str, Any]) -> CallResult:
            return await self._scout.call_tool(
                key, arguments, version=version, read_only=read_only, caller=caller, upstream=upstream, extra=extra
            )

        async def send(upstream: Upstream, extra: Mapping[str, Any]) -> CallResult:
            try:
                try:
                    return await call(upstream, extra)
                except ToolNotFoundError:
                    await self._sign_ins.check_unlisted(key, caller)
                    raise
            except SignInRequiredError as error:  # nothing was sent, so it may be sent after the sign-in
                if not await self._sign_ins.signed_in(key, caller, upstream, error):
                    raise
            return await call(upstream, extra)

        state = params.get("requestState")
        outcome: CallResult | dict[str, Any]
        if isinstance(state, str) and state.startswith(STATE_PREFIX):
            outcome = await self._resume(key, state, request)
        elif not client.modern:
            outcome = await _answer_questions(send, client, extra)
        elif client.can_answer:
            outcome = await self._pending.start(key, lambda pending: send(pending, extra), client, caller)
        else:
            outcome = await send(client, extra)
        return self._finish(outcome, caller) if isinstance(outcome, CallResult) else outcome

    async def _resume(self, key: str, state: str, request: ToolRequest) -> CallResult | dict[str, Any]:
        """Go on with a pending call. What is refused leaves an audit line, as a refused call does."""
        caller = request.caller
        try:
            self._pending.find(key, state, caller)
            if not (self._sign_ins.waits_for(key, caller) or await self._scout.access.may_call(caller, key)):
                self._pending.cancel(state)
                raise CallError("the call may not be continued", hint="the operator has denied it meanwhile")
        except CallError:
            self._scout.access.record_unlisted_call(caller, key, request.params.get("inputResponses"))
            raise
        responses = request.params.get("inputResponses")
        return await self._pending.resume(key, state, responses, request.client, caller)

    async def missing_sign_ins(self, caller: Caller) -> dict[str, str]:
        """Return the servers whose tools a caller gets by signing in for themselves, each with how."""
        return await self._sign_ins.missing(caller)

    def close(self) -> None:
        """Cancel every call that waits for an answer."""
        self._pending.close()

    def _finish(self, outcome: CallResult, caller: Caller) -> dict[str, Any]:
        result, size = dict(outcome.result), outcome.size
        self._note_links(outcome.tool.server, result, caller)
        if outcome.repairs:
            result["_meta"] = meta_with_repairs(result.get("_meta"), outcome.repairs)
            size = result_size(result)
        if size > self.max_bytes:
            return cut_result(result, size, self.max_bytes, self._results.keep(result_json(result), caller))
        return result


async def _answer_questions(send: Send, client: RequestClient, extra: Mapping[str, Any]) -> CallResult:
    """Call a server of 2026 for a handshake client: ask the client each question and send the replies with a retry."""
    asked = 0
    while asked < _MAX_QUESTIONS:
        outcome = await send(client, extra)
        if outcome.result.get("resultType") != "input_required":
            return outcome
        questions = outcome.result.get("inputRequests") or {}
        asked += max(len(questions), 1)
        if asked > _MAX_QUESTIONS:
            break
        replies = {
            name: await client.ask(str(question.get("method")), question.get("params") or {})
            for name, question in questions.items()
        }
        extra = {**extra, "inputResponses": replies}
        if outcome.result.get("requestState") is not None:
            extra["requestState"] = outcome.result["requestState"]
    raise CallError(
        f"the server asked for input {_MAX_QUESTIONS} times without finishing",
        hint="call again with complete arguments",
    )


def _extra(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is forwarded with a call: replies to a server's questions, and the client's own `_meta`."""
    extra = {name: params[name] for name in ("inputResponses", "requestState") if name in params}
    meta = params.get("_meta")
    if isinstance(meta, Mapping):
        client_meta = {
            name: value for name, value in meta.items() if name != "progressToken" and not name.startswith(_RESERVED)
        }
        if client_meta:
            extra["_meta"] = client_meta
    return extra
