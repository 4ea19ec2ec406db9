"""Tool calls as models return them: the tool's name and the arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolscout.errors import InvalidArgumentsError, InvalidValueError

_ARGUMENTS = ("arguments", "input", "args")
"""The names of the arguments field in OpenAI, Anthropic and LangChain."""


def read_tool_call(tool_call: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of a tool call of either API, as an object of its SDK or as plain JSON."""
    function = _part(tool_call, "function")
    body = tool_call if function is None else function
    name = _part(body, "name")
    if not isinstance(name, str) or not name:
        raise InvalidValueError(
            f"{type(tool_call).__name__} is not a tool call: it has no tool name",
            hint="pass one item of the model's tool_calls, or one tool_use block",
        )
    arguments = next((value for word in _ARGUMENTS if (value := _part(body, word)) is not None), None)
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except ValueError as error:
            raise InvalidArgumentsError(
                f"the arguments of {name} are not JSON: {error}",
                hint="call again with one JSON object; nothing was sent",
            ) from None
    if arguments is not None and not isinstance(arguments, Mapping):
        raise InvalidArgumentsError(
            f"the arguments of {name} are {type(arguments).__name__}, not an object",
            hint="call again with one JSON object; nothing was sent",
        )
    return name, dict(arguments or {})


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
