"""A chat with Anthropic's Messages API that sends a few tools with each turn instead of all of them.

    ANTHROPIC_API_KEY=... python examples/anthropic_chat.py

Set ANTHROPIC_BASE_URL and ANTHROPIC_MODEL to use another address or model. httpx2 is installed with toolscout.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx2

from toolbox import shop_tools
from toolscout import Discovery, Scout, ToolscoutError

URL = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
KEY = os.environ.get("ANTHROPIC_API_KEY", "")
MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5")
MOST_ROUNDS = 8


async def turn(scout: Scout, http: httpx2.AsyncClient, messages: list[dict[str, Any]], text: str) -> str:
    """Answer the user: choose the tools of this turn, then let the model call them until it has an answer."""
    messages.append({"role": "user", "content": text})
    picked = await scout.discover_tools(text, limit=4, messages=messages)
    print(f"[{len(picked)} of {picked.total_searched} tools, {picked.tokens_saved} tokens saved]")
    for _ in range(MOST_ROUNDS):
        body = {
            "model": MODEL,
            "max_tokens": 1_024,
            "system": "You help in a shop. Use the tools.",
            "messages": messages,
            "tools": picked.anthropic_tools(),
        }
        reply = await http.post(f"{URL}/v1/messages", json=body)
        reply.raise_for_status()
        content = reply.json()["content"]
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return "".join(block["text"] for block in content if block["type"] == "text")
        messages.append({"role": "user", "content": [await run(picked, call) for call in calls]})
    return "I could not finish that."


async def run(picked: Discovery, call: dict[str, Any]) -> dict[str, Any]:
    """Run one call. If the model made a mistake, return the error to it, so that it can correct the call."""
    try:
        result = await picked.call(call)
        said, failed = result.text, result.is_error
    except ToolscoutError as error:
        said, failed = f"{error.message}; {error.hint}", True
    return {"type": "tool_result", "tool_use_id": call["id"], "content": said, "is_error": failed}


async def main() -> None:
    """Read the user's messages and answer them, until the input ends."""
    messages: list[dict[str, Any]] = []
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
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
