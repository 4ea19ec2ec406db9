"""What a model answered: which tool it calls, and with what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolscout.errors import InvalidArgumentsError, InvalidValueError

_ARGUMENTS = ("arguments", "input", "args")
"""What OpenAI, Anthropic and LangChain call them."""


def read_tool_call(tool_call: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of a model's tool call: of either API, as an SDK's object or as plain JSON."""
    function = _part(tool_call, "function")
    body = tool_call if function is None else function
    name = _part(body, "name")
    if not isinstance(name, str) or not name:
        raise InvalidValueError(
            f"{type(tool_call).__name__} is no tool call: it names no tool",
            hint="pass one item of the model's tool_calls, or one tool_use block",
        )
    given = next((value for word in _ARGUMENTS if (value := _part(body, word)) is not None), None)
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except ValueError as error:
            raise InvalidArgumentsError(
                f"the arguments of {name} are not JSON: {error}",
                hint="call again with one JSON object; nothing was sent",
            ) from None
    if given is not None and not isinstance(given, Mapping):
        raise InvalidArgumentsError(
            f"the arguments of {name} are {type(given).__name__}, not an object",
            hint="call again with one JSON object; nothing was sent",
        )
    return name, dict(given or {})


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
