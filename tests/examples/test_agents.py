"""The agents of `examples/`, each with a model of its framework that answers from a script."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from chat_apis import check_openai_tools
from toolscout import Scout

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
WHERE = "Where is the parcel of order 1042?"
REFUND = "Refund it, and let the customer know by email"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


@pytest.fixture
async def scout(open_scout: Callable[..., Scout], load: Callable[[str], ModuleType]) -> AsyncIterator[Scout]:
    async with open_scout() as opened:
        await opened.index_server_tools("shop", load("toolbox").shop_tools())
        yield opened


async def test_the_pydantic_ai_agent_gets_the_tools_of_each_run(
    scout: Scout, load: Callable[[str], ModuleType]
) -> None:
    agent = load("pydantic_ai_agent").agent
    offered: list[set[str]] = []
    script: list[ModelResponsePart] = [
        ToolCallPart("shop__track_parcel", {"order": "1042"}),
        TextPart("It is shipped."),
        ToolCallPart("shop__refund_order", {"order_number": "1042"}),
        ToolCallPart("shop__refund_order", {"order": "1042"}),
        TextPart("Refunded."),
    ]

    def answer(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offered.append({tool.name for tool in info.function_tools})
        assert all(tool.parameters_json_schema["type"] == "object" for tool in info.function_tools)
        return ModelResponse(parts=[script[len(offered) - 1]])

    first = await agent.run(WHERE, deps=scout, model=FunctionModel(answer))
    second = await agent.run(REFUND, deps=scout, model=FunctionModel(answer), message_history=first.all_messages())
    assert (first.output, second.output) == ("It is shipped.", "Refunded.")
    assert "shop__send_email" not in offered[0]
    assert {"shop__refund_order", "shop__send_email", "shop__track_parcel"} <= offered[2]
    assert max(map(len, offered)) <= 4
    parts = [part for message in second.all_messages() for part in message.parts]
    results = [str(part.content) for part in parts if part.part_kind in ("tool-return", "retry-prompt")]
    assert [results[0], results[2]] == [
        "The parcel of order 1042 is on a ship to Bergen.",
        "Refunded 39.00 euros to ann@example.com.",
    ]
    assert "'order' is missing" in results[1]


class ScriptedChat(BaseChatModel):
    """A chat model of LangChain that answers from a script, and writes down what it is offered."""

    script: list[AIMessage]
    offered: list[set[str]] = Field(default_factory=list)
    asked: list[int] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        check_openai_tools(tools)
        self.offered.append({tool["function"]["name"] for tool in tools})
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.asked.append(len(messages))
        return ChatResult(generations=[ChatGeneration(message=self.script[len(self.asked) - 1])])


def calling(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call_{name}", "type": "tool_call"}])


async def test_the_langgraph_agent_binds_the_tools_of_each_turn(
    scout: Scout, load: Callable[[str], ModuleType]
) -> None:
    model = ScriptedChat(
        script=[
            calling("shop__track_parcel", order="1042"),
            AIMessage("It is shipped."),
            calling("shop__refund_order", order_number="1042"),
            calling("shop__refund_order", order="1042"),
            AIMessage("Refunded."),
        ]
    )
    graph = load("langgraph_agent").build(model, scout)
    state = await graph.ainvoke({"messages": [HumanMessage(WHERE)]})
    state = await graph.ainvoke({"messages": [*state["messages"], HumanMessage(REFUND)]})
    assert state["messages"][-1].text == "Refunded."
    assert "shop__send_email" not in model.offered[0]
    assert {"shop__refund_order", "shop__send_email", "shop__track_parcel"} <= model.offered[2]
    assert model.offered[2] == model.offered[3] == model.offered[4]
    tools = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert [message.status for message in tools] == ["success", "error", "success"]
    assert tools[-1].text == "Refunded 39.00 euros to ann@example.com."
