"""A pydantic-ai agent whose tools are chosen anew for each run, from all that the scout knows.

    pip install "pydantic-ai-slim[openai]"
    OPENAI_API_KEY=... python examples/pydantic_ai_agent.py "Where is the parcel of order 1042?"

MODEL names another model, as pydantic-ai does: MODEL=anthropic:claude-sonnet-4-5.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from typing import Any

from pydantic_ai import Agent, FunctionToolset, ModelRetry, RunContext, Tool
from pydantic_ai.messages import ModelMessage, UserPromptPart

from toolbox import shop_tools
from toolscout import Discovery, Scout, ToolscoutError

agent = Agent(deps_type=Scout, instructions="You help in a shop. Use the tools.")


@agent.toolset(per_run_step=False)
async def tools_of_this_run(context: RunContext[Scout]) -> FunctionToolset[Scout]:
    """Choose the tools for what the user asks in this run, and asked before."""
    messages = list(said(context.messages))
    picked = await context.deps.discover_tools(str(context.prompt), limit=4, messages=messages)
    return FunctionToolset([as_tool(picked, shown) for shown in picked.anthropic_tools()])


def as_tool(picked: Discovery, shown: dict[str, Any]) -> Tool[Scout]:
    """Make a tool of the agent: its definition as it is, its call through the scout."""

    async def call(**arguments: Any) -> str:
        try:
            return (await picked.call({"name": shown["name"], "arguments": arguments})).text
        except ToolscoutError as error:
            raise ModelRetry(f"{error.message}; {error.hint}") from error

    return Tool.from_schema(call, shown["name"], shown["description"], shown["input_schema"])


def said(messages: list[ModelMessage]) -> Iterator[dict[str, Any]]:
    """Walk what the user said, as `discover_tools` reads it."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                yield {"role": "user", "content": part.content}


async def main(*questions: str) -> None:
    """Answer one question after the other, each with tools of its own."""
    history: list[ModelMessage] = []
    async with Scout.open(store="memory:") as scout:
        await scout.index_server_tools("shop", shop_tools())
        for question in questions:
            model = os.environ.get("MODEL", "openai:gpt-5-mini")
            result = await agent.run(question, deps=scout, model=model, message_history=history)
            history = result.all_messages()
            print(result.output)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
