"""ToolRegistry: for the author of a server with many tools. Register them, search them, call them, attach them."""

from __future__ import annotations

import asyncio
import threading
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
from toolscout.ports import Embedder, ToolProvider
from toolscout.registry.definitions import Definition, clean_name
from toolscout.registry.engine import Catalogue, Engine
from toolscout.registry.functions import Registered, Run, from_definition, from_function
from toolscout.registry.listing import Listings
from toolscout.registry.problems import Problem, Problems
from toolscout.registry.providers import acting, acts_as_provider, call_offered, define_offered
from toolscout.registry.request import check_provider, current_scope
from toolscout.registry.results import Result, failed, with_repairs
from toolscout.registry.view import Listed, Offered, View
from toolscout.settings import Settings
from toolscout.suggestions import did_you_mean

_MOST_TOLD = 10_000

F = TypeVar("F", bound=Callable[..., Any])


class ToolRegistry:
    """Tools that are found by search and called by name instead of being listed; itself a provider of them.

    Every method is safe from any number of threads and event loops at once.
    """

    def __init__(self, *, settings: Settings | None = None, embedder: Embedder | None = None, name: str = "") -> None:
        """Make an empty registry; `name` is what reports call it when it is a provider of another."""
        self.name = name
        self._settings = settings or Settings.from_env()
        self._lock = threading.Lock()
        self._tools: dict[str, Registered] = {}
        self._providers: tuple[ToolProvider, ...] = ()
        self._changes = 0
        self._listings = Listings()
        self._problems = Problems()
        self._told: set[str] = set()
        self._engine = Engine(self._settings, embedder)
        weakref.finalize(self, self._engine.close, wait=False).atexit = False  # the end of the process is enough

    # What there is

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
        """Register a function, as a decorator; the options are those of the SDK's own `tool`, and keywords."""

        def registered(function: F) -> F:
            self._register(from_function(function, self._settings, **options))
            return function

        return registered if function is None else registered(function)

    def register_tool(
        self, definition: Mapping[str, Any] | SdkTool, handler: Callable[..., Any], *keywords: str
    ) -> None:
        """Register a ready MCP definition and its handler, which gets the arguments by name, or as one mapping."""
        self._register(from_definition(definition, handler, self._settings, keywords=keywords))

    def unregister(self, name: str) -> bool:
        """Take a registered tool out; False when there was none of that name."""
        with self._lock:
            found = self._tools.pop(clean_name(name), None)
            self._changes += 1
        return found is not None

    def add_provider(self, provider: ToolProvider) -> None:
        """Add everybody's tools from elsewhere; where names are equal, registered tools and earlier providers win."""
        check_provider(provider)
        if provider is self:
            raise InvalidValueError("a registry cannot be its own provider", hint="add another registry")
        with self._lock:
            if not any(known is provider for known in self._providers):
                self._providers = (*self._providers, provider)
                self._changes += 1

    def remove_provider(self, provider: ToolProvider) -> bool:
        """Take a provider out with its tools; False when it was not there."""
        with self._lock:
            left = tuple(known for known in self._providers if known is not provider)
            found = len(left) < len(self._providers)
            self._providers = left
            self._changes += 1
        self._listings.forget(provider)
        return found

    @property
    def ranker(self) -> str:
        """How a search ranks that does not say."""
        return self._settings.ranker

    @property
    def problems(self) -> list[Problem]:
        """What went wrong with providers and definitions lately, oldest first."""
        return self._problems.all()

    # Search and call

    async def search(self, query: str, *, limit: int = 10, ranker: str | None = None) -> Answer:
        """Find tools by meaning and words, those of the request included; each hit has its full definition."""
        view = await self._view()
        answer, dropped = await self._engine.search(
            query,
            latest=self._catalogue,
            revision=self._revision,
            own=view.own_rows(),
            limit=limit,
            ranker=ranker or self._settings.ranker,
        )
        self._tell(dropped)
        now = replace(view, registered=self._registered(), shared=self._last())
        found = await asyncio.gather(*(self._whole(match, now) for match in answer))
        matches = tuple(match for match in found if match is not None)
        tips = answer.suggestions[:1]  # the others name what a registry does not have: categories, a threshold
        if answer and not matches:
            tips = ("Tools that fit are known, but who has them does not answer now.",)
        return replace(answer, matches=matches, suggestions=tips)

    async def execute(self, name: str, arguments: Any = None) -> Result:
        """Call a tool as `execute_tool` does: what goes wrong is a result that says so, for a model to read."""
        try:
            return await self.call_tool(name, arguments)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - a crash is told without its detail
            return failed(error, name)

    async def call_tool(self, name: str, arguments: Any = None) -> Result:
        """Check the arguments and call a tool, exactly once; ToolNotFoundError when the request sees none so named."""
        definition, run = await self._resolve(name)
        checked, repairs = validate_arguments(definition.tool, arguments)
        with acting(None):
            return with_repairs(await run(checked), repairs)

    async def get_tool(self, name: str) -> SdkTool | None:
        """Return one full definition, None when there is no such tool."""
        try:
            return (await self._resolve(name))[0].sdk
        except ToolNotFoundError:
            return None

    async def list_tool_metadata(self) -> list[ToolMetadata]:
        """Return what everybody has here: the registered tools and those of the providers, but not the request's."""
        return replace(await self._view(), request=()).metadata()

    # Life

    async def refresh(self) -> None:
        """Ask every provider again and index all there is now, so that the first search waits for nothing."""
        await self._listings.read(self._providers, self._settings, self._problems, again=True)
        self._tell(await self._engine.index(self._catalogue, self._revision))

    def attach(self, server: Any, *, search_name: str = "tool_search", execute_name: str = "execute_tool") -> None:
        """Add the two tools to a server of the SDK (low-level or MCPServer) or of FastMCP; its own stay as they are."""
        from toolscout.registry.attach import attach

        attach(self, server, search_name=search_name, execute_name=execute_name)

    def close(self) -> None:
        """Free the model and the index; a registry that is garbage, or the end of the process, does that too."""
        self._engine.close()

    # Within

    def _register(self, tool: Registered) -> None:
        name = tool.definition.name
        with self._lock:
            known = name in self._tools
            self._tools[name] = tool
            self._changes += 1
        if known:
            self._problems.report(self, f"{name!r} is registered again; the later one replaces the earlier")

    def _registered(self) -> dict[str, Registered]:
        with self._lock:
            return dict(self._tools)

    def _last(self) -> Listed:
        return [(provider, self._listings.last(provider)) for provider in self._providers]

    @property
    def _revision(self) -> int:
        """Every change makes it higher: both counts only grow."""
        return self._changes + self._listings.version

    async def _view(self) -> View:
        """Return what the request sees, asking the providers whose listing is old."""
        request, shared = await asyncio.gather(self._request(), self._shared())
        return View(request=request, registered=self._registered(), shared=shared)

    async def _shared(self) -> Listed:
        providers = self._providers
        listings = await self._listings.read(providers, self._settings, self._problems)
        return list(zip(providers, listings, strict=True))

    async def _request(self) -> Listed:
        scope = current_scope()
        if scope is None or acts_as_provider(self):
            return []
        while scope.trouble:
            self._problems.report("request", scope.trouble.pop())
        providers = [provider for provider in scope.providers if provider is not self]
        listings = await scope.listings.read(providers, self._settings, self._problems)
        return list(zip(providers, listings, strict=True))

    def _catalogue(self) -> Catalogue:
        """Return everybody's tools as they are now; the revision is read first, so that it never promises too much."""
        revision = self._revision
        view = View(registered=self._registered(), shared=self._last())
        for provider, what in view.collisions():
            self._tell_once(provider, what)
        return Catalogue(revision=revision, rows=view.shared_rows())

    def _tell(self, dropped: Sequence[Dropped]) -> None:
        for item in dropped:
            self._tell_once(self, f"{item.where} cannot be found: {item.reason}")

    def _tell_once(self, provider: object, what: str) -> None:
        """Report what comes back with every indexing as long as nobody changes it."""
        if what in self._told:
            return
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told.add(what)
        self._problems.report(provider, what)

    async def _whole(self, match: ToolMatch, view: View) -> ToolMatch | None:
        """Give a hit its full definition; None when it has gone, or cannot be had now."""
        origin = next(view.find(match.tool.name), None)
        try:
            definition = await self._define(origin) if origin else None
        except CallError:
            return None
        if definition is None:
            return None
        tool = definition.tool
        return replace(
            match,
            tool=replace(
                match.tool,
                key=tool.name,
                title=tool.title,
                description=tool.description or match.tool.description,
                input_schema=tool.input_schema,
                output_schema=tool.output_schema,
                annotations=tool.annotations,
                meta=tool.meta,
                fingerprint=tool.fingerprint,
                owner=None,
            ),
        )

    async def _define(self, origin: Registered | Offered) -> Definition | None:
        if isinstance(origin, Registered):
            return origin.definition
        return await define_offered(origin.provider, origin.metadata.name, self._settings, self._problems)

    async def _resolve(self, name: str) -> tuple[Definition, Run]:
        """Return the tool that a name means here, and what runs it."""
        wanted = clean_name(name)
        registered = self._tools.get(wanted)
        request = await self._request()
        if registered is not None and not any(wanted in listing.tools for _, listing in request):
            return registered.definition, registered.run
        view = View(request=request, registered=self._registered(), shared=await self._shared())
        for origin in view.find(wanted):
            definition = await self._define(origin)
            if definition is not None:
                return definition, origin.run if isinstance(origin, Registered) else self._runs(origin, definition)
        found = await self._unlisted(view, wanted)
        if found is None:
            raise ToolNotFoundError(
                f"no tool is named {name[:200]!r}",
                hint="search for it by what it should do",
                suggestions=did_you_mean(wanted, view.names()),
            )
        return found

    async def _unlisted(self, view: View, name: str) -> tuple[Definition, Run] | None:
        """Ask every provider for a tool that none has listed: it may be new, or one that is never listed."""
        ready = [provider for provider, listing in (*view.request, *view.shared) if not listing.failures]
        origins = [Offered(provider=provider, metadata=ToolMetadata(name=name)) for provider in ready]
        found = await asyncio.gather(*map(self._define, origins), return_exceptions=True)
        for origin, definition in zip(origins, found, strict=True):
            if isinstance(definition, Definition):
                return definition, self._runs(origin, definition)
        return None

    def _runs(self, origin: Offered, definition: Definition) -> Run:
        structured = definition.sdk.output_schema is not None

        async def run(arguments: dict[str, Any]) -> Result:
            return await call_offered(
                origin.provider, origin.metadata.name, arguments, self._settings, self._problems, structured=structured
            )

        return run
