"""A model that follows a script: each step reads the last result and chooses the next call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp import Client


@dataclass(frozen=True)
class Call:
    """The model wants a tool to be called."""

    name: str
    arguments: dict[str, Any]


Step = Callable[[Any], Call | str]


async def converse(client: Client, script: Sequence[Step]) -> tuple[list[str], str]:
    """Show the model the tools, then every result. Return the names of the tools, and its last message."""
    names = [tool.name for tool in (await client.list_tools()).tools]
    last: Any = None
    for step in script:
        choice = step(last)
        if isinstance(choice, str):
            return names, choice
        assert choice.name in names, "a model can call only what it was shown"
        last = await client.call_tool(choice.name, choice.arguments)
        assert not last.is_error, last.content
    raise AssertionError("the script has no end")


def first_hit(result: Any) -> str:
    """Return the name that a model would choose: the first."""
    return str(result.structured_content["tools"][0]["name"])
