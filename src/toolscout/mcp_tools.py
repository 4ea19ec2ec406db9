"""The tools that Toolscout itself offers over MCP. One object holds name, description, schema and handler of a tool.

The gateway and an attached `ToolRegistry` both list and run these objects. The input schema is derived from the
handler's signature, so a parameter and its default are written once. Results are plain dicts in the shape of MCP,
because the SDK is imported by the entry points only.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from toolscout.arguments import validate_arguments
from toolscout.errors import InvalidArgumentsError, to_wire
from toolscout.models import Tool
from toolscout.parameter_names import with_our_names
from toolscout.suggestions import did_you_mean
from toolscout.text import cut

Handler = Callable[..., Awaitable[Any]]
"""An async function: first the request, whose type the entry point chooses, then the tool's parameters by name."""

READS: Mapping[str, Any] = {"readOnlyHint": True, "openWorldHint": False}
WRITES: Mapping[str, Any] = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}

REPAIRS = "toolscout/repairs"
"""The `_meta` field of a result that lists what was repaired in the arguments."""

_LONGEST_TEXT = 8_000
_GATHERED = "arguments stood beside the name; they are gathered now"
_KEY_ORDER = ("anyOf", "enum", "type", "items", "default", "minimum", "maximum", "description")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool of Toolscout's own, as `tools/list` shows it and as `tools/call` runs it."""

    name: str
    description: str
    handler: Handler
    input_schema: Mapping[str, Any]
    annotations: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    surface: str = ""
    """The smallest surface of the gateway that lists it."""
    calls_other_tool: bool = False
    """Its `arguments` are for another tool, whose schema checks them. Here only the names are checked."""
    ignores_unknown: bool = False
    """Unknown parameters are ignored instead of refused, for agents written for other systems."""

    def definition(self, **placeholders: str) -> dict[str, Any]:
        """Return the entry of `tools/list`. `placeholders` fill the `{names}` in the description."""
        entry: dict[str, Any] = {
            "name": self.name,
            "description": self.description.format(**placeholders) if placeholders else self.description,
            "inputSchema": self.input_schema,
        }
        if self.annotations:
            entry["annotations"] = self.annotations
        if self.output_schema:
            entry["outputSchema"] = self.output_schema
        return entry

    def read_arguments(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the arguments for the handler and the repairs that were made, or raise InvalidArgumentsError."""
        parameters = self.input_schema["properties"]
        arguments = with_our_names(arguments, parameters)
        if self.calls_other_tool:
            return self._gather(arguments)
        tool = Tool(
            key=self.name, id=self.name, server="", server_title="", name=self.name, input_schema=self.input_schema
        )
        checked, repairs = validate_arguments(tool, arguments)
        if parameters and not self.ignores_unknown:
            self._refuse_unknown(checked)
        return {name: value for name, value in checked.items() if name in parameters}, repairs

    async def run(self, request: Any, arguments: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
        """Check the arguments and call the handler. Return its result and the repairs that were made."""
        checked, repairs = self.read_arguments(arguments)
        return await self.handler(request, **checked), repairs

    def _gather(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Move what a model put beside the name into `arguments`, where it belongs."""
        parameters = self.input_schema["properties"]
        gathered = {name: value for name, value in arguments.items() if name in parameters}
        beside = {name: value for name, value in arguments.items() if name not in parameters}
        for name, schema in parameters.items():
            if schema["type"] == "string":
                self._check_text(name, gathered)
        if beside and "arguments" not in gathered:
            return {**gathered, "arguments": beside}, (_GATHERED,)
        if not self.ignores_unknown:
            self._refuse_unknown(beside)
        return gathered, ()

    def _check_text(self, name: str, arguments: Mapping[str, Any]) -> None:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return
        if name in self.input_schema["required"] or not isinstance(value, str | None):
            description = self.input_schema["properties"][name].get("description")
            raise InvalidArgumentsError(
                f"{name} must be text" + (f": {description}" if description else ""),
                hint=f"{self.name} takes {', '.join(self.input_schema['properties'])}; nothing was sent",
            )

    def _refuse_unknown(self, arguments: Mapping[str, Any]) -> None:
        """Refuse unknown parameters: a misspelt filter must not pass for no filter."""
        parameters = self.input_schema["properties"]
        for name in arguments:
            if name not in parameters:
                raise InvalidArgumentsError(
                    f"{self.name} has no parameter {name!r}",
                    hint=f"it takes {', '.join(parameters)}",
                    suggestions=did_you_mean(name, parameters),
                )


def mcp_tool(description: str, **options: Any) -> Callable[[Handler], McpTool]:
    """Make an McpTool of an async function. `options` set fields of McpTool. The name is the function's by default."""

    def make(handler: Handler) -> McpTool:
        tool = McpTool(
            name=handler.__name__,
            description=description,
            handler=handler,
            input_schema=derive_schema(handler),
            annotations=READS,
        )
        return replace(tool, **options)

    return make


def derive_schema(handler: Handler) -> dict[str, Any]:
    """Write the JSON schema of a handler's parameters, without the first one, which is the request.

    A default of None means that the parameter may be omitted. It is not written: null is not a value it takes.
    """
    hints = get_type_hints(handler, include_extras=True)
    parameters = list(inspect.signature(handler).parameters.values())[1:]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {item.name: _property_schema(hints[item.name], item.default) for item in parameters},
    }
    required = [item.name for item in parameters if item.default is item.empty]
    return {**schema, "required": required} if required else schema


def answer_result(structured: Mapping[str, Any], *, text: Any = None, tips: Sequence[str] = ()) -> dict[str, Any]:
    """Write a result: structured content for programs, and text for the model (the same as compact JSON by default)."""
    texts = [text if isinstance(text, str) else _compact(structured if text is None else text), *tips]
    return {
        "content": [{"type": "text", "text": item} for item in texts],
        "structuredContent": dict(structured),
    }


def error_result(error: BaseException, max_bytes: int | None = None) -> dict[str, Any]:
    """Write an error as a result for the model to read: what happened and what to do next.

    If it has more than `max_bytes`, its details are left out, with a word.
    """
    body = to_wire(error)
    size = len(_compact(_compact(body)).encode("utf-8", "replace"))  # its text is more than its structured content
    if max_bytes is not None and size * 2 > max_bytes:
        kept = body["error"]
        kept |= {
            "message": cut(kept["message"], _LONGEST_TEXT),
            "hint": cut(kept["hint"], _LONGEST_TEXT),
            "suggestions": [],
        }
        kept.pop("categories_available", None)
        if kept.pop("details", None):
            kept["details"] = {"left_out": f"details that would make this answer longer than {max_bytes:,} bytes"}
    return {"content": [{"type": "text", "text": _compact(body)}], "structuredContent": body, "isError": True}


def meta_with_repairs(meta: Mapping[str, Any] | None, repairs: Sequence[str]) -> dict[str, Any]:
    """Return the `_meta` of a result with more repairs, in front of those that it lists already."""
    meta = meta or {}
    return {**meta, REPAIRS: [*repairs, *meta.get(REPAIRS, ())]}


def _property_schema(hint: Any, default: Any) -> dict[str, Any]:
    schema: dict[str, Any] = TypeAdapter(hint).json_schema()
    options = [option for option in schema.pop("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        schema = {**options[0], **schema}
    elif options:
        schema["anyOf"] = [_in_order(option) for option in options]
    if default is not None and default is not inspect.Parameter.empty:
        schema["default"] = default
    if "enum" in schema:
        schema.pop("type", None)
    return _in_order(schema)


def _in_order(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Write keys in a fixed order: the list is the same bytes whatever order pydantic writes."""
    return {key: schema[key] for key in sorted(schema, key=_KEY_ORDER.index)}


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
