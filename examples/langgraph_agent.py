"""A LangGraph agent that gives its model only the tools that a turn needs, chosen from the whole catalogue.

    pip install langgraph langchain langchain-openai
    OPENAI_API_KEY=... python examples/langgraph_agent.py "Where is the parcel of order 1042?"

Set MODEL to use another model, in LangChain's format: MODEL=anthropic:claude-sonnet-4-5.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, ToolCall, ToolMessage, convert_to_openai_messages
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

from toolbox import shop_tools
from toolscout import Discovery, Scout, ToolscoutError


def build(model: BaseChatModel, scout: Scout) -> Any:
    """Make a graph of two nodes: one asks the model, one runs its tool calls. The state is only the messages."""

    async def think(state: MessagesState) -> dict[str, list[AnyMessage]]:
        picked = await tools_of_this_turn(scout, state["messages"])
        tools = picked.openai_tools()
        return {"messages": [await (model.bind_tools(tools) if tools else model).ainvoke(state["messages"])]}

    async def act(state: MessagesState) -> dict[str, list[AnyMessage]]:
        picked = await tools_of_this_turn(scout, state["messages"])
        calls = getattr(state["messages"][-1], "tool_calls", [])
        return {"messages": [await run(picked, call) for call in calls]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", act)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile()


async def tools_of_this_turn(scout: Scout, messages: list[AnyMessage]) -> Discovery:
    """Choose tools for the user's last message. Every step of a turn chooses the same, so no state is needed."""
    asked = next(message for message in reversed(messages) if isinstance(message, HumanMessage))
    return await scout.discover_tools(asked.text, limit=4, messages=convert_to_openai_messages(messages))


async def run(picked: Discovery, call: ToolCall) -> ToolMessage:
    """Run one call. If the model made a mistake, return the error to it."""
    try:
        result = await picked.call(call)
        said, status = result.text, "error" if result.is_error else "success"
    except ToolscoutError as error:
        said, status = f"{error.message}; {error.hint}", "error"
    return ToolMessage(said, tool_call_id=call["id"], status=status)


async def main(*questions: str) -> None:
    """Answer the questions one after the other, each with its own tools."""
    from langchain.chat_models import init_chat_model

    messages: list[AnyMessage] = []
    async with Scout.open(store="memory:") as scout:
        await scout.index_server_tools("shop", shop_tools())
        graph = build(init_chat_model(os.environ.get("MODEL", "openai:gpt-5-mini")), scout)
        for question in questions:
            messages = (await graph.ainvoke({"messages": [*messages, HumanMessage(question)]}))["messages"]
            print(messages[-1].text)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
