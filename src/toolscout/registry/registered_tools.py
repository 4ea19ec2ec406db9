"""Registered tools, made from a Python function, or from an MCP definition and its handler."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool as FunctionTool
from mcp.server.mcpserver.utilities.context_injection import find_context_parameter
from mcp_types import Tool as SdkTool

from toolscout.errors import InvalidValueError
from toolscout.models import ToolMetadata
from toolscout.registry.definitions import ToolDefinition, read_definition
from toolscout.registry.tool_results import McpResult
from toolscout.settings import Settings
from toolscout.sources.provider_calls import ask, is_async, to_result

Run = Callable[[dict[str, Any]], Awaitable[McpResult]]

_context: ContextVar[Context[Any, Any] | None] = ContextVar("toolscout_sdk_context", default=None)


@contextmanager
def use_context(context: Context[Any, Any]) -> Iterator[None]:
    """Set the SDK context of the handlers that are called within the block."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def _current_context() -> Context[Any, Any]:
    """Return the SDK context of the request. Outside a request, return one that raises when it is used."""
    return _context.get() or Context()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """A registered tool: its definition, and a function that runs it in the caller's task and context."""

    definition: ToolDefinition
    keywords: tuple[str, ...]
    row: Mapping[str, Any]
    run: Run

    @property
    def metadata(self) -> ToolMetadata:
        """The metadata, as a provider lists it."""
        tool = self.definition.tool
        return ToolMetadata(name=tool.name, description=tool.description, keywords=self.keywords)


def from_function(
    function: Callable[..., Any], settings: Settings, *, keywords: Sequence[str] = (), **options: Any
) -> RegisteredTool:
    """Make a tool from a function, as the SDK does: from its name, type hints and docstring."""
    function_tool = FunctionTool.from_function(_with_fastmcp_context(function), **options)
    sdk = SdkTool(
        name=function_tool.name,
        title=function_tool.title,
        description=function_tool.description,
        input_schema=function_tool.parameters,
        output_schema=function_tool.output_schema,
        annotations=function_tool.annotations,
        icons=function_tool.icons,
        _meta=function_tool.meta,
    )

    async def run(arguments: dict[str, Any]) -> McpResult:
        result: McpResult = await function_tool.run(arguments, _current_context(), convert_result=True)
        return result

    words = _read_keywords(keywords)
    return _register(read_definition(sdk, settings, keywords=words), words, run)


def from_definition(
    definition: Any, handler: Callable[..., Any], settings: Settings, *, keywords: Sequence[str] = ()
) -> RegisteredTool:
    """Make a tool from an MCP definition and its handler.

    If the handler's parameters have the names of the schema's properties, or if it takes `**arguments`, it gets the
    arguments by name. Otherwise it gets one mapping. A parameter of the SDK's type Context gets the request's context.
    """
    if not callable(handler):
        raise InvalidValueError(
            f"the handler is a {type(handler).__name__}, which cannot be called",
            hint="pass a function, synchronous or asynchronous",
        )
    words = _read_keywords(keywords)
    checked = read_definition(definition, settings, keywords=words)
    handler = _with_fastmcp_context(handler)
    context = find_context_parameter(handler)
    by_name = _arguments_by_name(handler, checked.sdk.input_schema, context)
    structured = checked.sdk.output_schema is not None

    async def run(arguments: dict[str, Any]) -> McpResult:
        extra = {context: _current_context()} if context else {}
        if by_name is None:
            call = functools.partial(handler, arguments, **extra)
        else:
            call = functools.partial(handler, **by_name(arguments), **extra)
        return to_result(await ask(call, None), structured=structured)

    return _register(checked, words, run)


def _register(definition: ToolDefinition, keywords: tuple[str, ...], run: Run) -> RegisteredTool:
    row = definition.sdk.model_dump(by_alias=True, mode="json", exclude_none=True)
    return RegisteredTool(definition=definition, keywords=keywords, row={**row, "keywords": keywords}, run=run)


def _read_keywords(keywords: Sequence[str]) -> tuple[str, ...]:
    words = (keywords,) if isinstance(keywords, str) else tuple(keywords)
    if not all(isinstance(word, str) for word in words):
        raise InvalidValueError("keywords must be strings", hint='for example keywords=["email", "smtp"]')
    return tuple(word.strip() for word in words if word.strip())


def _arguments_by_name(
    handler: Callable[..., Any], schema: Mapping[str, Any], context: str | None
) -> Callable[[Mapping[str, Any]], dict[str, Any]] | None:
    """Return a function that selects the handler's arguments by name, or None if the handler takes one mapping."""
    try:
        parameters = [item for item in inspect.signature(handler).parameters.values() if item.name != context]
    except (TypeError, ValueError):
        return None
    properties = schema.get("properties")
    schema_names = set(properties) if isinstance(properties, Mapping) else set()
    single = [item for item in parameters if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)]
    names = {item.name for item in single}
    if not {item.name for item in single if item.default is item.empty} <= schema_names:
        return None
    if any(item.kind is item.VAR_KEYWORD for item in parameters):
        return dict
    if any(item.kind is item.POSITIONAL_ONLY for item in single) or (parameters and not names & schema_names):
        return None
    return lambda arguments: {name: value for name, value in arguments.items() if name in names}


def _with_fastmcp_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """Hide a parameter of FastMCP's type Context from the schema, and fill it when the function is called."""
    name = _fastmcp_parameter(function)
    if name is None:
        return function

    def call(*positional: Any, **arguments: Any) -> Any:
        from fastmcp.server.dependencies import get_context

        return function(*positional, **arguments, **{name: get_context()})

    async def call_async(*positional: Any, **arguments: Any) -> Any:
        return await call(*positional, **arguments)

    wrapper = functools.wraps(function)(call_async if is_async(function) else call)
    signature = inspect.signature(function, eval_str=True)
    visible = [item for item in signature.parameters.values() if item.name != name]
    wrapper.__signature__ = signature.replace(parameters=visible)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {key: hint for key, hint in function.__annotations__.items() if key != name}
    return wrapper


def _fastmcp_parameter(function: Callable[..., Any]) -> str | None:
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # noqa: BLE001 - the SDK reports type hints that cannot be read
        return None
    for name, hint in hints.items():
        for kind in (hint, *typing.get_args(hint)):
            if getattr(kind, "__name__", "") == "Context" and getattr(kind, "__module__", "").startswith("fastmcp."):
                return name
    return None
