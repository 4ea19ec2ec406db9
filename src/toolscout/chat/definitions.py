"""Tool definitions in the form that each chat API wants."""

from __future__ import annotations

from typing import Any

from toolscout.chat.names import model_name
from toolscout.chat.schemas import plain_schema
from toolscout.errors import InvalidValueError
from toolscout.models import Tool
from toolscout.text import count_tokens

_LONGEST_DESCRIPTION = 1_024
"""OpenAI refuses the whole request if one description is longer."""


def openai_tool(name: str, tool: Tool, api: str = "chat") -> dict[str, Any]:
    """Return a definition for OpenAI. Chat Completions nests it under `function`, Responses does not."""
    body = {"name": name, "description": _short(tool.description), "parameters": plain_schema(tool.input_schema)}
    if api == "chat":
        return {"type": "function", "function": body}
    if api == "responses":
        return {"type": "function", **body}
    raise InvalidValueError(f"{api!r} is not an OpenAI API", hint="use 'chat' or 'responses'")


def anthropic_tool(name: str, tool: Tool) -> dict[str, Any]:
    """Return a definition for Anthropic's Messages API."""
    return {"name": name, "description": tool.description, "input_schema": plain_schema(tool.input_schema)}


def definition_tokens(tool: Tool) -> int:
    """Count the tokens of a definition, in the longer of the two forms, so that a budget holds for both APIs."""
    return count_tokens([{"type": "function", "function": anthropic_tool(model_name(tool.key), tool)}])


def _short(description: str) -> str:
    if len(description) <= _LONGEST_DESCRIPTION:
        return description
    cut = description[: _LONGEST_DESCRIPTION - 2]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut} …"
