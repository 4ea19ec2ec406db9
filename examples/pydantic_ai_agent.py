"""A pydantic-ai agent whose tools are chosen for each run from the whole catalogue.

    pip install "pydantic-ai-slim[openai]"
    OPENAI_API_KEY=... python examples/pydantic_ai_agent.py "Where is the parcel of order 1042?"

Set MODEL to use another model, in pydantic-ai's format: MODEL=anthropic:claude-sonnet-4-5.
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
    """Choose the tools for this request of the user and the previous ones."""
    messages = list(user_messages(context.messages))
    picked = await context.deps.discover_tools(str(context.prompt), limit=4, messages=messages)
    return FunctionToolset([as_tool(picked, definition) for definition in picked.anthropic_tools()])


def as_tool(picked: Discovery, definition: dict[str, Any]) -> Tool[Scout]:
    """Make a tool for the agent that keeps the definition and is called through the scout."""

    async def call(**arguments: Any) -> str:
        try:
            return (await picked.call({"name": definition["name"], "arguments": arguments})).text
        except ToolscoutError as error:
            raise ModelRetry(f"{error.message}; {error.hint}") from error

    return Tool.from_schema(call, definition["name"], definition["description"], definition["input_schema"])


def user_messages(messages: list[ModelMessage]) -> Iterator[dict[str, Any]]:
    """Yield the user's messages in the format of `discover_tools`."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                yield {"role": "user", "content": part.content}


async def main(*questions: str) -> None:
    """Answer the questions one after the other, each with its own tools."""
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
