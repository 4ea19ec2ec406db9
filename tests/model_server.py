"""A model that answers from a script, behind an HTTP server with a chat API. It refuses what the real API refuses."""

from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from chat_apis import check_anthropic_messages, check_anthropic_tools, check_openai_messages, check_openai_tools
from web import serving

Call = tuple[str, Any]
"""The name of a tool, and the arguments. Text is sent as it is, even if it is not JSON."""
Step = str | list[Call]
"""What the model says, or the tools that it calls."""


@dataclass
class ScriptedModel:
    """Answers one request after the other with the steps of its script."""

    script: list[Step]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    origin: str = ""

    def tools(self, number: int) -> set[str]:
        """Return the names that a request offered."""
        return {tool.get("function", tool)["name"] for tool in self.bodies[number].get("tools", ())}

    def results(self, number: int) -> list[str]:
        """Return the results of tools since the last message of the model."""
        last = self.bodies[number]["messages"]
        spoken = max(place for place, message in enumerate(last) if message["role"] == "assistant")
        return [text for message in last[spoken + 1 :] for text in _texts(message)]

    def step(self, body: dict[str, Any]) -> Step:
        """Return the next step. A tool that was not offered cannot be called."""
        self.bodies.append(body)
        step = self.script[len(self.bodies) - 1]
        called = set() if isinstance(step, str) else {name for name, _ in step}
        assert called <= self.tools(-1), f"{called - self.tools(-1)} was not offered"
        return step


Reply = Callable[[ScriptedModel, Mapping[str, str], dict[str, Any]], dict[str, Any]]
"""How an API answers: the model, the headers, the body."""


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(message["content"], str):
        yield message["content"]
    else:
        yield from (block["content"] for block in message["content"])


def openai_reply(model: ScriptedModel, headers: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    """Answer as Chat Completions does."""
    assert headers["authorization"] == "Bearer secret"
    assert body.keys() <= {"model", "messages", "tools"}
    assert body.get("tools") != [], "[] is too short - 'tools'"
    check_openai_tools(body.get("tools", ()))
    check_openai_messages(body["messages"])
    step = model.step(body)
    message: dict[str, Any] = {"role": "assistant", "content": step if isinstance(step, str) else None}
    if not isinstance(step, str):
        message["tool_calls"] = [
            {
                "id": f"call_{len(model.bodies)}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": value if isinstance(value, str) else json.dumps(value)},
            }
            for number, (name, value) in enumerate(step)
        ]
    reason = "stop" if isinstance(step, str) else "tool_calls"
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def anthropic_reply(model: ScriptedModel, headers: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
    """Answer as Messages does."""
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("secret", "2023-06-01")
    assert body.keys() <= {"model", "max_tokens", "system", "messages", "tools"}
    assert body["max_tokens"] > 0
    check_anthropic_tools(body["tools"])
    check_anthropic_messages(body["messages"])
    step = model.step(body)
    if isinstance(step, str):
        return {"type": "message", "content": [{"type": "text", "text": step}], "stop_reason": "end_turn"}
    calls = [
        {"type": "tool_use", "id": f"toolu_{len(model.bodies)}_{number}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(step)
    ]
    return {"type": "message", "content": calls, "stop_reason": "tool_use"}


@asynccontextmanager
async def scripted_model(path: str, reply: Reply, script: Sequence[Step]) -> AsyncIterator[ScriptedModel]:
    """Serve a scripted model on a port of this machine until the end of the block. All of its script must be used."""
    model = ScriptedModel(list(script))

    async def answer(request: Request) -> JSONResponse:
        try:
            return JSONResponse(reply(model, request.headers, await request.json()))
        except Exception:  # noqa: BLE001 - what the API would refuse, and what the script did not foresee
            model.refused.append(traceback.format_exc())
            return JSONResponse({"error": {"type": "invalid_request_error"}}, status_code=400)

    async with serving(Starlette(routes=[Route(path, answer, methods=["POST"])])) as model.origin:
        yield model
    assert model.refused == []
    assert len(model.bodies) == len(script)
