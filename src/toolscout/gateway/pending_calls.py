"""Calls that wait for input: a handshake server asks during a call, and a client of 2026 gets `input_required`.

Such a call runs in its own task. The client retries with the `requestState` and its answer, which resumes the task. The
task lives in this process, so replicas need a sticky load balancer for such calls.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolscout.errors import CallError
from toolscout.gateway.client import RequestClient
from toolscout.gateway.identity import Owner, owner_of
from toolscout.models import Caller, CallResult

STATE_PREFIX = "toolscout-pending:"
_QUESTION = "question"
_MAX_PENDING = 256
_MAX_OWN_PENDING = 32
_WAIT_S = 600.0

Start = Callable[["PendingCall"], Awaitable[CallResult]]


class PendingCall:
    """The upstream of one such call. A question suspends it, and its owner's next request resumes it."""

    def __init__(self, key: str, client: RequestClient, owner: Owner) -> None:
        self.key = key
        self.client = client
        self.owner = owner
        self.until = time.monotonic() + _WAIT_S
        self.task: asyncio.Task[CallResult] | None = None
        self.questions: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._answer: asyncio.Future[Mapping[str, Any]] | None = None
        self._one_question = asyncio.Lock()

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Return the capabilities that the client declares."""
        return self.client.capabilities

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send progress to the client's current request."""
        await self.client.progress(progress, total, message)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a question to the client, one at a time, and wait for the answer."""
        self.client.check_can_answer(method)
        async with self._one_question:
            self._answer = asyncio.get_running_loop().create_future()
            await self.questions.put({"method": method, "params": dict(params)})
            try:
                return await asyncio.wait_for(self._answer, _WAIT_S)
            except TimeoutError:
                raise CallError(f"the client did not answer {method} in time", hint="call again") from None

    def answer(self, responses: Any) -> None:
        """Resume the call with the client's reply."""
        reply = responses.get(_QUESTION) if isinstance(responses, Mapping) else None
        if not isinstance(reply, Mapping):
            raise CallError(
                f"the retry has no inputResponses[{_QUESTION!r}]", hint="answer the question in inputRequests"
            )
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(reply)


class PendingCalls:
    """All calls that wait for an answer in this process."""

    def __init__(self) -> None:
        self._calls: dict[str, PendingCall] = {}

    async def start(self, key: str, start: Start, client: RequestClient, caller: Caller) -> CallResult | dict[str, Any]:
        """Start a call in its own task. Return its result, or `input_required` if the server asks first."""
        call = PendingCall(key, client, owner_of(caller))
        call.task = asyncio.ensure_future(_run(start, call))
        return await self._wait(call)

    def find(self, key: str, state: str, caller: Caller) -> PendingCall:
        """Return a pending call. Unknown, expired and foreign states give the same error."""
        self._cancel_expired()
        call = self._calls.get(state)
        if call is None or (call.key, call.owner) != (key, owner_of(caller)):
            raise CallError("no call is pending under this requestState", hint="call the tool again without it")
        return call

    def cancel(self, state: str) -> None:
        """End a pending call."""
        call = self._calls.pop(state, None)
        if call and call.task:
            call.task.cancel()

    async def resume(
        self, key: str, state: str, responses: Any, client: RequestClient, caller: Caller
    ) -> CallResult | dict[str, Any]:
        """Answer a pending call and continue it."""
        call = self.find(key, state, caller)
        call.answer(responses)
        del self._calls[state]
        call.client = client
        return await self._wait(call)

    def close(self) -> None:
        """Cancel every pending call."""
        for call in self._calls.values():
            if call.task:
                call.task.cancel()
        self._calls.clear()

    async def _wait(self, call: PendingCall) -> CallResult | dict[str, Any]:
        assert call.task is not None  # noqa: S101 - set where the call starts
        question = asyncio.ensure_future(call.questions.get())
        try:
            await asyncio.wait({call.task, question}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            call.task.cancel()
            raise
        finally:
            if not question.done():
                question.cancel()
        if call.task.done():
            return call.task.result()
        return self._suspend(call, question.result())

    def _suspend(self, call: PendingCall, question: Mapping[str, Any]) -> dict[str, Any]:
        self._cancel_expired()
        own = sum(pending.owner == call.owner for pending in self._calls.values())
        if len(self._calls) >= _MAX_PENDING or own >= _MAX_OWN_PENDING:
            if call.task:
                call.task.cancel()
            raise CallError("too many calls are pending", hint="try again later")
        state = STATE_PREFIX + secrets.token_urlsafe(24)
        call.until = time.monotonic() + _WAIT_S
        self._calls[state] = call
        return {"resultType": "input_required", "inputRequests": {_QUESTION: dict(question)}, "requestState": state}

    def _cancel_expired(self) -> None:
        now = time.monotonic()
        for state in [state for state, call in self._calls.items() if call.until < now]:
            call = self._calls.pop(state)
            if call.task:
                call.task.cancel()


async def _run(start: Start, call: PendingCall) -> CallResult:
    return await start(call)
