"""A model that follows a script instead of costing money: it reads tools and results, and decides what comes next."""

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
    """Let the model see the tools and then every result; return the names of the tools it saw, and what it said."""
    seen = [tool.name for tool in (await client.list_tools()).tools]
    last: Any = None
    for step in script:
        decided = step(last)
        if isinstance(decided, str):
            return seen, decided
        assert decided.name in seen, "a model can call only what it was shown"
        last = await client.call_tool(decided.name, decided.arguments)
        assert not last.is_error, last.content
    raise AssertionError("the script has no end")


def first_hit(result: Any) -> str:
    """Return the name that a model would choose: the first."""
    return str(result.structured_content["tools"][0]["name"])
