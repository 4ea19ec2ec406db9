"""A chat with OpenAI's Chat Completions API that sends a few tools with each turn instead of all of them.

    OPENAI_API_KEY=... python examples/openai_chat.py
    OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=qwen3 python examples/openai_chat.py

The second line is for any other server with the same API. httpx2 is installed with toolscout.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx2

from toolbox import shop_tools
from toolscout import Discovery, Scout, ToolscoutError

URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
KEY = os.environ.get("OPENAI_API_KEY", "")
MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
MOST_ROUNDS = 8


async def turn(scout: Scout, http: httpx2.AsyncClient, messages: list[dict[str, Any]], text: str) -> str:
    """Answer the user: choose the tools of this turn, then let the model call them until it has an answer."""
    messages.append({"role": "user", "content": text})
    picked = await scout.discover_tools(text, limit=4, messages=messages)
    print(f"[{len(picked)} of {picked.total_searched} tools, {picked.tokens_saved} tokens saved]")
    for _ in range(MOST_ROUNDS):
        body = {"model": MODEL, "messages": messages}
        if tools := picked.openai_tools():  # the API refuses an empty list
            body["tools"] = tools
        reply = await http.post(f"{URL}/chat/completions", json=body)
        reply.raise_for_status()
        message = reply.json()["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        for call in message["tool_calls"]:
            said = await run(picked, call)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
    return "I could not finish that."


async def run(picked: Discovery, call: dict[str, Any]) -> str:
    """Run one call. If the model made a mistake, return the error to it, so that it can correct the call."""
    try:
        return (await picked.call(call)).text
    except ToolscoutError as error:
        return f"error: {error.message}; {error.hint}"


async def main() -> None:
    """Read the user's messages and answer them, until the input ends."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You help in a shop. Use the tools."}]
    headers = {"Authorization": f"Bearer {KEY}"}
    async with Scout.open(store="memory:") as scout, httpx2.AsyncClient(headers=headers, timeout=60) as http:
        await scout.index_server_tools("shop", shop_tools())
        while True:
            try:
                text = await asyncio.to_thread(input, "> ")
            except EOFError:
                return
            print(await turn(scout, http, messages, text))


if __name__ == "__main__":
    asyncio.run(main())
