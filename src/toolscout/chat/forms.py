"""Definitions as each chat API wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolscout.chat.schemas import plain_schema
from toolscout.errors import InvalidValueError

if TYPE_CHECKING:
    from toolscout.models.tools import Tool

_LONGEST_DESCRIPTION = 1_024
"""OpenAI refuses the whole request for one description that is longer."""


def openai_tool(name: str, tool: Tool, api: str = "chat") -> dict[str, Any]:
    """Write a definition for OpenAI: Chat Completions nests it under `function`, Responses does not."""
    body = {"name": name, "description": _short(tool.description), "parameters": plain_schema(tool.input_schema)}
    if api == "chat":
        return {"type": "function", "function": body}
    if api == "responses":
        return {"type": "function", **body}
    raise InvalidValueError(f"no OpenAI API is called {api!r}", hint="use 'chat' or 'responses'")


def anthropic_tool(name: str, tool: Tool) -> dict[str, Any]:
    """Write a definition for Anthropic's Messages."""
    return {"name": name, "description": tool.description, "input_schema": plain_schema(tool.input_schema)}


def _short(description: str) -> str:
    if len(description) <= _LONGEST_DESCRIPTION:
        return description
    cut = description[: _LONGEST_DESCRIPTION - 2]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut} …"
