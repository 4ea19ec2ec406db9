"""The chat APIs: the names they accept, the definitions they want, the calls their models answer with."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolscout.errors import InvalidArgumentsError, InvalidValueError
from toolscout.models.tools import Tool

_LONGEST = 64
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_COMBINED = ("allOf", "anyOf", "oneOf")


def model_name(key: str) -> str:
    """Write a key as both APIs accept it, at most 64 letters, digits, `_` and `-`; the same key always the same way."""
    legal = _ILLEGAL.sub("_", key)
    if legal == key and len(key) <= _LONGEST:
        return key
    mark = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{legal[: _LONGEST - len(mark) - 1]}_{mark}"


def model_names(keys: Iterable[str]) -> dict[str, str]:
    """Return name -> key; of two keys that would share a name, the first has it."""
    names: dict[str, str] = {}
    for key in keys:
        names.setdefault(model_name(key), key)
    return names


def openai_tool(name: str, tool: Tool, api: str = "chat") -> dict[str, Any]:
    """Write a definition for OpenAI: Chat Completions nests it under `function`, Responses does not."""
    body = {"name": name, "description": tool.description, "parameters": plain_schema(tool.input_schema)}
    if api == "chat":
        return {"type": "function", "function": body}
    if api == "responses":
        return {"type": "function", **body}
    raise InvalidValueError(f"no OpenAI API is called {api!r}", hint="use 'chat' or 'responses'")


def anthropic_tool(name: str, tool: Tool) -> dict[str, Any]:
    """Write a definition for Anthropic's Messages."""
    return {"name": name, "description": tool.description, "input_schema": plain_schema(tool.input_schema)}


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Write a schema as both APIs accept it: an object on top, its alternatives laid together.

    What that gives away is not lost: arguments are checked against the schema itself when the tool is called.
    """
    plain = {name: value for name, value in schema.items() if name not in _COMBINED}
    plain["type"] = "object"
    properties: dict[str, Any] = dict(plain.get("properties") or {})
    required: list[str] = list(plain.get("required") or [])
    for word in _COMBINED:
        parts = [part for part in schema.get(word) or [] if isinstance(part, Mapping)]
        for part in parts:
            properties = {**(part.get("properties") or {}), **properties}
        wanted = [list(part.get("required") or []) for part in parts]
        if wanted:
            shared = wanted[0] if word != "allOf" else [name for names in wanted for name in names]
            required += [name for name in shared if word == "allOf" or all(name in names for names in wanted)]
    plain["properties"] = properties
    if required := [name for name in dict.fromkeys(required) if name in properties]:
        plain["required"] = required
    return plain


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
    given = _part(body, "arguments")
    given = _part(body, "input") if given is None else given
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
