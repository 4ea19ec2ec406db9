"""`ToolRegistry`: register tools, search them, call them, and attach them to a server."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

from mcp.shared.exceptions import MCPError
from mcp_types import Icon, ToolAnnotations
from mcp_types import Tool as SdkTool

from toolscout.arguments import validate_arguments
from toolscout.errors import CallError, InvalidValueError, ToolNotFoundError
from toolscout.models import Answer, Dropped, ToolMatch, ToolMetadata
from toolscout.parameter_names import accepts_other_names
from toolscout.ports import Embedder, ToolProvider
from toolscout.registry.definitions import ToolDefinition, clean_name
from toolscout.registry.problem_log import ProblemLog, ProviderProblem
from toolscout.registry.providers import (
    ProviderToolsCache,
    acting,
    call_provider_tool,
    check_provider,
    get_definition,
    is_acting_provider,
)
from toolscout.registry.registered_tools import RegisteredTool, Run, from_definition, from_function
from toolscout.registry.request_scope import current_scope
from toolscout.registry.search_engine import SearchEngine, SharedTools
from toolscout.registry.tool_results import McpResult, error_for_model, with_repairs
from toolscout.registry.visible_tools import ProviderTool, ToolsByProvider, VisibleTools
from toolscout.settings import Settings
from toolscout.suggestions import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])


@accepts_other_names
class ToolRegistry:
    """Tools that clients find by search and call by name, instead of listing them all.

    A registry is itself a provider. Any number of threads and event loops may call its methods at the same time.
    """

    def __init__(self, *, settings: Settings | None = None, embedder: Embedder | None = None, name: str = "") -> None:
        """Make an empty registry. `name` identifies it in problem reports."""
        self.name = name
        self._settings = settings or Settings.from_env()
        self._lock = threading.Lock()
        self._tools: dict[str, RegisteredTool] = {}
        self._providers: tuple[ToolProvider, ...] = ()
        self._changes = 0
        self._provider_tools = ProviderToolsCache()
        self._problems = ProblemLog()
        self._engine = SearchEngine(self._settings, embedder)
        weakref.finalize(
            self, self._engine.close, wait=False
        ).atexit = False  # the process frees everything when it ends

    # Tools and providers

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        keywords: Sequence[str] = (),
        annotations: ToolAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
    ) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, **options: Any) -> Any:
        """Register a function, as a decorator. The options are those of the SDK's own `tool`, plus `keywords`."""

        def register(function: F) -> F:
            self._register(from_function(function, self._settings, **options))
            return function

        return register if function is None else register(function)

    def register_tool(
        self, definition: Mapping[str, Any] | SdkTool, handler: Callable[..., Any], *keywords: str
    ) -> None:
        """Register an MCP definition and its handler, which gets the arguments by name or as one mapping."""
        self._register(from_definition(definition, handler, self._settings, keywords=keywords))

    def unregister(self, name: str) -> bool:
        """Remove a registered tool. Return False if there is none of that name."""
        with self._lock:
            tool = self._tools.pop(clean_name(name), None)
            self._changes += 1
        return tool is not None

    def add_provider(self, provider: ToolProvider) -> None:
        """Add a provider for all requests. On equal names, registered tools and earlier providers have precedence."""
        check_provider(provider)
        if provider is self:
            raise InvalidValueError("a registry cannot be its own provider", hint="add another registry")
        with self._lock:
            if not any(item is provider for item in self._providers):
                self._providers = (*self._providers, provider)
                self._changes += 1

    def remove_provider(self, provider: ToolProvider) -> bool:
        """Remove a provider and its tools. Return False if the registry does not have it."""
        with self._lock:
            others = tuple(item for item in self._providers if item is not provider)
            removed = len(others) < len(self._providers)
            self._providers = others
            self._changes += 1
        self._provider_tools.drop(provider)
        return removed

    @property
    def ranker(self) -> str:
        """The default ranker."""
        return self._settings.ranker

    @property
    def problems(self) -> list[ProviderProblem]:
        """The latest problems with providers and definitions, oldest first."""
        return self._problems.all()

    # Search and call

    async def search(self, query: str, *, limit: int = 10, ranker: str | None = None) -> Answer:
        """Find tools by meaning and words, including those of the request. Each hit has its full definition."""
        started = time.perf_counter()
        visible = await self._visible_tools()
        answer, dropped = await self._engine.search(
            query,
            latest=self._shared_tools,
            revision=self._revision,
            request_rows=visible.request_rows(),
            limit=limit,
            ranker=ranker or self._settings.ranker,
        )
        self._report_dropped(dropped)
        # Tools may have changed during the search.
        visible = replace(visible, registered=self._registered(), shared=self._last_provider_tools())
        complete = await asyncio.gather(*(self._with_definition(match, visible) for match in answer))
        matches = tuple(match for match in complete if match is not None)
        tips = answer.suggestions[:1]  # the others are about categories and thresholds, which a registry does not have
        if answer and not matches:
            tips = ("Some tools match, but their providers do not answer now.",)
        answer = replace(answer, matches=matches, suggestions=tips)
        return answer.timed((time.perf_counter() - started) * 1_000)

    async def execute(self, name: str, arguments: Any = None) -> McpResult:
        """Call a tool as `execute_tool` does: an error becomes a result for the model to read."""
        try:
            return await self.call_tool(name, arguments)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - the detail of a crash is logged, not returned
            return error_for_model(error, name)

    async def call_tool(self, name: str, arguments: Any = None) -> McpResult:
        """Check the arguments and call a tool exactly once. Raise ToolNotFoundError if there is no such tool."""
        definition, run = await self._resolve(name)
        checked, repairs = validate_arguments(definition.tool, arguments)
        with acting(None):
            return with_repairs(await run(checked), repairs)

    async def get_tool(self, name: str) -> SdkTool | None:
        """Return one full definition, or None if there is no such tool."""
        try:
            return (await self._resolve(name))[0].sdk
        except ToolNotFoundError:
            return None

    async def list_tool_metadata(self) -> list[ToolMetadata]:
        """Return the shared tools: the registered ones and those of the providers, but not the request's."""
        return replace(await self._visible_tools(), request=()).metadata()

    # Lifetime

    async def refresh(self) -> None:
        """List the tools of every provider and index them all now, so that the next search does not wait."""
        await self._provider_tools.read(self._providers, self._settings, self._problems, refresh=True)
        self._report_dropped(await self._engine.index(self._shared_tools, self._revision))

    def attach(self, server: Any, *, search_name: str = "tool_search", execute_name: str = "execute_tool") -> None:
        """Add the two tools to a server of the SDK (low-level or MCPServer) or of FastMCP, beside its own tools."""
        from toolscout.registry.attach import attach

        attach(self, server, search_name=search_name, execute_name=execute_name)

    def close(self) -> None:
        """Free the model and the index. Garbage collection does the same."""
        self._engine.close()

    # Private

    def _register(self, tool: RegisteredTool) -> None:
        name = tool.definition.name
        with self._lock:
            is_new = name not in self._tools
            self._tools[name] = tool
            self._changes += 1
        if not is_new:
            self._problems.report(self, f"{name!r} is registered again, which replaces the earlier one")

    def _registered(self) -> dict[str, RegisteredTool]:
        with self._lock:
            return dict(self._tools)

    def _last_provider_tools(self) -> ToolsByProvider:
        return [(provider, self._provider_tools.last(provider)) for provider in self._providers]

    @property
    def _revision(self) -> int:
        """A number that grows with every change of the shared tools."""
        return self._changes + self._provider_tools.version

    async def _visible_tools(self) -> VisibleTools:
        request, shared = await asyncio.gather(self._request_tools(), self._current_provider_tools())
        return VisibleTools(request=request, registered=self._registered(), shared=shared)

    async def _current_provider_tools(self) -> ToolsByProvider:
        providers = self._providers
        tools = await self._provider_tools.read(providers, self._settings, self._problems)
        return list(zip(providers, tools, strict=True))

    async def _request_tools(self) -> ToolsByProvider:
        scope = current_scope()
        if scope is None or is_acting_provider(self):
            return []
        while scope.problems:
            self._problems.report("request", scope.problems.pop())
        providers = [provider for provider in scope.providers if provider is not self]
        tools = await scope.tools.read(providers, self._settings, self._problems)
        return list(zip(providers, tools, strict=True))

    def _shared_tools(self) -> SharedTools:
        """Return the shared tools. The revision is read first, so it is never newer than the tools."""
        revision = self._revision
        visible = VisibleTools(registered=self._registered(), shared=self._last_provider_tools())
        for provider, problem in visible.collisions():
            self._problems.report_once(provider, problem)
        return SharedTools(revision=revision, rows=visible.shared_rows())

    def _report_dropped(self, dropped: Sequence[Dropped]) -> None:
        for item in dropped:
            self._problems.report_once(self, f"{item.where} is not searchable: {item.reason}")

    async def _with_definition(self, match: ToolMatch, visible: VisibleTools) -> ToolMatch | None:
        """Return a hit with its full definition, or None if the tool is gone or its provider fails."""
        tool = next(visible.find(match.tool.name), None)
        try:
            definition = await self._definition(tool) if tool else None
        except CallError:
            return None
        if definition is None:
            return None
        full = definition.tool
        return replace(
            match,
            tool=replace(
                match.tool,
                key=full.name,
                title=full.title,
                description=full.description or match.tool.description,
                input_schema=full.input_schema,
                output_schema=full.output_schema,
                annotations=full.annotations,
                meta=full.meta,
                fingerprint=full.fingerprint,
                owner=None,
            ),
        )

    async def _definition(self, tool: RegisteredTool | ProviderTool) -> ToolDefinition | None:
        if isinstance(tool, RegisteredTool):
            return tool.definition
        return await get_definition(tool.provider, tool.metadata.name, self._settings, self._problems)

    async def _resolve(self, name: str) -> tuple[ToolDefinition, Run]:
        """Return the definition of the tool that a name means in this request, and the function that runs it."""
        cleaned = clean_name(name)
        registered = self._tools.get(cleaned)
        request = await self._request_tools()
        if registered is not None and not any(cleaned in provided.tools for _, provided in request):
            return registered.definition, registered.run
        shared = await self._current_provider_tools()
        visible = VisibleTools(request=request, registered=self._registered(), shared=shared)
        for tool in visible.find(cleaned):
            definition = await self._definition(tool)
            if definition is not None:
                return definition, tool.run if isinstance(tool, RegisteredTool) else self._runner(tool, definition)
        unlisted = await self._find_unlisted(visible, cleaned)
        if unlisted is None:
            raise ToolNotFoundError(
                f"no tool is named {name[:200]!r}",
                hint="search for it by what it should do",
                suggestions=did_you_mean(cleaned, visible.names()),
            )
        return unlisted

    async def _find_unlisted(self, visible: VisibleTools, name: str) -> tuple[ToolDefinition, Run] | None:
        """Ask every provider for a tool that none has listed. It may be new, or a provider may not list all tools."""
        providers = [provider for provider, provided in (*visible.request, *visible.shared) if not provided.failures]
        tools = [ProviderTool(provider=provider, metadata=ToolMetadata(name=name)) for provider in providers]
        definitions = await asyncio.gather(*map(self._definition, tools), return_exceptions=True)
        for tool, definition in zip(tools, definitions, strict=True):
            if isinstance(definition, ToolDefinition):
                return definition, self._runner(tool, definition)
        return None

    def _runner(self, tool: ProviderTool, definition: ToolDefinition) -> Run:
        structured = definition.sdk.output_schema is not None

        async def run(arguments: dict[str, Any]) -> McpResult:
            return await call_provider_tool(
                tool.provider, tool.metadata.name, arguments, self._settings, self._problems, structured=structured
            )

        return run
