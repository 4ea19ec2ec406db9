"""Tools from Python functions, and from ready definitions with a handler; schemas are made by the SDK itself."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver.tools import Tool as FunctionTool
from mcp.server.mcpserver.utilities.context_injection import find_context_parameter
from mcp_types import Tool as SdkTool

from toolscout.errors import InvalidValueError
from toolscout.models import ToolMetadata
from toolscout.registry.context import current_context
from toolscout.registry.definitions import Definition, read_definition
from toolscout.registry.results import Result
from toolscout.settings import Settings
from toolscout.sources.provider_calls import ask, is_async, to_result

Run = Callable[[dict[str, Any]], Awaitable[Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A tool that was registered: its definition, and what runs it in the caller's own task and context."""

    definition: Definition
    keywords: tuple[str, ...]
    row: Mapping[str, Any]
    run: Run

    @property
    def metadata(self) -> ToolMetadata:
        """What a provider says of it."""
        tool = self.definition.tool
        return ToolMetadata(name=tool.name, description=tool.description, keywords=self.keywords)


def from_function(
    function: Callable[..., Any], settings: Settings, *, keywords: Sequence[str] = (), **options: Any
) -> Registered:
    """Make a tool of a function as the SDK does: name, schemas and description from hints and docstring."""
    made = FunctionTool.from_function(_with_fastmcp_context(function), **options)
    sdk = SdkTool(
        name=made.name,
        title=made.title,
        description=made.description,
        input_schema=made.parameters,
        output_schema=made.output_schema,
        annotations=made.annotations,
        icons=made.icons,
        _meta=made.meta,
    )

    async def run(arguments: dict[str, Any]) -> Result:
        result: Result = await made.run(arguments, current_context(), convert_result=True)
        return result

    words = _words(keywords)
    return _registered(read_definition(sdk, settings, keywords=words), words, run)


def from_definition(
    definition: Any, handler: Callable[..., Any], settings: Settings, *, keywords: Sequence[str] = ()
) -> Registered:
    """Make a tool of a ready definition and its handler.

    A handler whose parameters are named as the schema's properties, or that takes `**arguments`, gets them by name; any
    other gets one mapping. A parameter of the SDK's type Context gets the context of the request.
    """
    if not callable(handler):
        raise InvalidValueError(
            f"the handler is a {type(handler).__name__}, which cannot be called",
            hint="give a function, synchronous or asynchronous",
        )
    words = _words(keywords)
    known = read_definition(definition, settings, keywords=words)
    handler = _with_fastmcp_context(handler)
    context = find_context_parameter(handler)
    named = _names(handler, known.sdk.input_schema, context)
    structured = known.sdk.output_schema is not None

    async def run(arguments: dict[str, Any]) -> Result:
        extra = {context: current_context()} if context else {}
        if named is None:
            called = functools.partial(handler, arguments, **extra)
        else:
            called = functools.partial(handler, **named(arguments), **extra)
        return to_result(await ask(called, None), structured=structured)

    return _registered(known, words, run)


def _registered(definition: Definition, keywords: tuple[str, ...], run: Run) -> Registered:
    row = definition.sdk.model_dump(by_alias=True, mode="json", exclude_none=True)
    return Registered(definition=definition, keywords=keywords, row={**row, "keywords": keywords}, run=run)


def _words(keywords: Sequence[str]) -> tuple[str, ...]:
    given = (keywords,) if isinstance(keywords, str) else tuple(keywords)
    if not all(isinstance(word, str) for word in given):
        raise InvalidValueError("keywords must be texts", hint='give them as keywords=["email", "smtp"]')
    return tuple(word.strip() for word in given if word.strip())


def _names(
    handler: Callable[..., Any], schema: Mapping[str, Any], context: str | None
) -> Callable[[Mapping[str, Any]], dict[str, Any]] | None:
    """Return what picks the arguments that the handler takes by name; None when it takes them as one mapping."""
    try:
        parameters = [item for item in inspect.signature(handler).parameters.values() if item.name != context]
    except (TypeError, ValueError):
        return None
    properties = schema.get("properties")
    known = set(properties) if isinstance(properties, Mapping) else set()
    single = [item for item in parameters if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)]
    takes = {item.name for item in single}
    if not {item.name for item in single if item.default is item.empty} <= known:
        return None
    if any(item.kind is item.VAR_KEYWORD for item in parameters):
        return dict
    if any(item.kind is item.POSITIONAL_ONLY for item in single) or (parameters and not takes & known):
        return None
    return lambda arguments: {name: value for name, value in arguments.items() if name in takes}


def _with_fastmcp_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """Hide a parameter of FastMCP's type Context from the schema, and fill it when the function is called."""
    name = _fastmcp_parameter(function)
    if name is None:
        return function

    def filled(*given: Any, **arguments: Any) -> Any:
        from toolscout.registry.attach.fastmcp import fastmcp_context

        return function(*given, **arguments, **{name: fastmcp_context()})

    async def filled_async(*given: Any, **arguments: Any) -> Any:
        return await filled(*given, **arguments)

    wrapper = functools.wraps(function)(filled_async if is_async(function) else filled)
    signature = inspect.signature(function, eval_str=True)
    kept = [item for item in signature.parameters.values() if item.name != name]
    wrapper.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {key: hint for key, hint in function.__annotations__.items() if key != name}
    return wrapper


def _fastmcp_parameter(function: Callable[..., Any]) -> str | None:
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # noqa: BLE001 - hints that cannot be read are the SDK's to complain about
        return None
    for name, hint in hints.items():
        for kind in (hint, *typing.get_args(hint)):
            if getattr(kind, "__name__", "") == "Context" and getattr(kind, "__module__", "").startswith("fastmcp."):
                return name
    return None
