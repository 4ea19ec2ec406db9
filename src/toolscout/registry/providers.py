"""The tools of providers: a cache of their lists, their definitions, and calls.

A provider is user code. If it raises or is slow, that is reported, and only its own tools are unavailable.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mcp.shared.exceptions import MCPError

from toolscout.errors import BadToolError, CallError, CallTimeoutError, InvalidValueError, ToolscoutError
from toolscout.models import ToolMetadata
from toolscout.ports import ToolProvider
from toolscout.registry.definitions import ToolDefinition, clean_name, read_definition
from toolscout.registry.problem_log import ProblemLog, provider_name
from toolscout.registry.tool_results import McpResult, author_message
from toolscout.settings import Settings
from toolscout.sources.provider_calls import OverdueError, ask, to_result

_MAX_DOUBLINGS = 5
_REPORTED = 3
_METHODS = ("list_tool_metadata", "get_tool", "call_tool")

_being_asked: ContextVar[frozenset[int]] = ContextVar("toolscout_being_asked", default=frozenset())
_acting: ContextVar[ToolProvider | None] = ContextVar("toolscout_acting", default=None)


def check_provider(provider: object) -> None:
    """Raise InvalidValueError if an object does not have the methods of a provider."""
    missing = [name for name in _METHODS if not callable(getattr(provider, name, None))]
    if missing or isinstance(provider, type):
        what = f"{provider.__name__} itself" if isinstance(provider, type) else f"a {type(provider).__name__}"
        raise InvalidValueError(
            f"{what} is not a provider" + (f": it has no {missing[0]}" if missing else ""),
            hint=f"a provider is an object with {', '.join(_METHODS)}: see toolscout.ToolProvider",
        )


def is_acting_provider(registry: object) -> bool:
    """Tell whether another registry is asking this one, which then answers without the tools of the request."""
    return _acting.get() is registry


@contextmanager
def acting(provider: ToolProvider | None) -> Iterator[None]:
    """Set which provider is being asked within the block, or None while a handler runs."""
    token = _acting.set(provider)
    try:
        yield
    finally:
        _acting.reset(token)


@contextmanager
def _asking(provider: ToolProvider) -> Iterator[None]:
    """Mark a provider as being asked. Registries that are providers of each other then do not recurse."""
    token = _being_asked.set(_being_asked.get() | {id(provider)})
    try:
        with acting(provider):
            yield
    finally:
        _being_asked.reset(token)


def _is_being_asked(provider: ToolProvider) -> bool:
    return id(provider) in _being_asked.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTools:
    """The tools of a provider, by the name that search shows. The metadata has the provider's own spelling."""

    tools: Mapping[str, ToolMetadata] = field(default_factory=dict)
    failures: int = 0
    """The number of failed attempts in a row to list them."""


@dataclass(frozen=True, slots=True)
class _CachedTools:
    provider: ToolProvider
    tools: ProviderTools
    listed_at: float


class ProviderToolsCache:
    """The tools of each provider, listed again when they are old. Any number of threads and loops may use it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.version = 0
        """A number that grows whenever the tools of a provider change."""
        self._clock = clock
        self._lock = threading.Lock()
        self._cached: dict[int, _CachedTools] = {}
        self._requests: dict[int, Future[ProviderTools | None]] = {}

    async def read(
        self, providers: Sequence[ToolProvider], settings: Settings, problems: ProblemLog, *, refresh: bool = False
    ) -> list[ProviderTools]:
        """Return the tools of each provider. Old lists are read again, with `refresh` all of them."""
        tools = {id(item): None if refresh else self._fresh(item, settings) for item in providers}
        stale = [item for item in providers if tools[id(item)] is None]
        listed = await asyncio.gather(*(self._list(item, settings, problems, refresh=refresh) for item in stale))
        tools.update(zip(map(id, stale), listed, strict=True))
        return [tools[id(item)] or ProviderTools() for item in providers]

    def last(self, provider: ToolProvider) -> ProviderTools:
        """Return the tools that a provider listed last, however long ago."""
        cached = self._cached.get(id(provider))
        return cached.tools if cached else ProviderTools()

    def drop(self, provider: ToolProvider) -> None:
        """Remove a provider from the cache."""
        with self._lock:
            self._cached.pop(id(provider), None)

    def _fresh(self, provider: ToolProvider, settings: Settings) -> ProviderTools | None:
        """Return the cached tools unless they are old. Each failure doubles the time to the next attempt."""
        cached = self._cached.get(id(provider))
        if cached is None:
            return None
        max_age_s = settings.provider_refresh_s * 2 ** min(cached.tools.failures, _MAX_DOUBLINGS)
        return cached.tools if self._clock() - cached.listed_at < max_age_s else None

    async def _list(
        self, provider: ToolProvider, settings: Settings, problems: ProblemLog, *, refresh: bool
    ) -> ProviderTools:
        """List the tools of a provider. Concurrent callers share one request."""
        key = id(provider)
        if _is_being_asked(provider):
            return ProviderTools()  # the provider is itself listing the tools of this registry
        while True:
            with self._lock:
                tools = None if refresh else self._fresh(provider, settings)
                if tools is not None:
                    return tools
                shared = self._requests.get(key)
                if shared is None:
                    request: Future[ProviderTools | None] = Future()
                    self._requests[key] = request
                    break
            # The request has its own deadline. This one applies when the event loop of the other thread is blocked.
            await asyncio.wait({asyncio.wrap_future(shared)}, timeout=3 * settings.provider_timeout_s)
            if not shared.done():
                return self.last(provider)
            if (listed := shared.result()) is not None:
                return listed
        tools = None
        try:
            tools = await self._ask(provider, settings, problems)
        finally:
            with self._lock:
                if tools is not None:
                    tools = self._store(provider, tools)
                del self._requests[key]
            request.set_result(tools)
        return tools

    def _store(self, provider: ToolProvider, tools: ProviderTools) -> ProviderTools:
        """Cache the tools. If they have not changed, keep the cached object, so that nothing is indexed again."""
        cached = self._cached.get(id(provider))
        if cached is not None and cached.tools == tools:
            tools = cached.tools
        else:
            self.version += 1
        self._cached[id(provider)] = _CachedTools(provider, tools, self._clock())
        return tools

    async def _ask(self, provider: ToolProvider, settings: Settings, problems: ProblemLog) -> ProviderTools:
        try:
            with _asking(provider):
                items = await ask(provider.list_tool_metadata, settings.provider_timeout_s, most=settings.max_tools + 1)
            return _read_metadata(provider, items, settings.max_tools, problems)
        except Exception as error:  # noqa: BLE001 - a provider may raise anything
            problems.report(provider, f"its tools cannot be listed: {_describe(error)}")
            return ProviderTools(failures=self.last(provider).failures + 1)


async def get_definition(
    provider: ToolProvider, name: str, settings: Settings, problems: ProblemLog
) -> ToolDefinition | None:
    """Return a provider's definition of a tool, or None if it has no such tool. Report a failure as CallError."""
    if _is_being_asked(provider):
        return None
    try:
        with _asking(provider):
            raw = await ask(functools.partial(provider.get_tool, name), settings.provider_timeout_s)
        return None if raw is None else read_definition(raw, settings, name=name)
    except BadToolError as error:
        problem = f"its definition of {name!r} cannot be used: {error.message}"
    except Exception as error:  # noqa: BLE001 - a provider may raise anything
        problem = f"its definition of {name!r} cannot be read: {_describe(error)}"
    problems.report(provider, problem)
    raise CallError(
        f"{name} cannot be used now: its provider {provider_name(provider)} failed",
        hint="try again later; nothing was sent",
    )


async def call_provider_tool(
    provider: ToolProvider,
    name: str,
    arguments: dict[str, Any],
    settings: Settings,
    problems: ProblemLog,
    *,
    structured: bool = False,
) -> McpResult:
    """Call a provider's tool exactly once, with the timeout of calls."""
    try:
        with acting(provider):
            value = await ask(functools.partial(provider.call_tool, name, arguments), settings.call_timeout_s)
    except OverdueError:
        problems.report(provider, f"a call of {name!r} took longer than {settings.call_timeout_s:g} s")
        raise CallTimeoutError(
            f"{name} gave no answer within {settings.call_timeout_s:g} s",
            hint="the call may have taken effect: check before you call again",
        ) from None
    except (ToolscoutError, MCPError):
        raise
    except Exception as error:
        if not author_message(error):
            problems.report(provider, f"a call of {name!r} failed: {_describe(error)}")
        raise
    try:
        return to_result(value, structured=structured)
    except ValueError as error:
        problems.report(provider, f"the result of {name!r} is not a result: {_describe(error)}")
        raise CallError(
            f"{name} was called, but its result cannot be read",
            hint="the call may have taken effect: check before you call again",
        ) from None


def _read_metadata(provider: ToolProvider, items: list[Any], max_tools: int, problems: ProblemLog) -> ProviderTools:
    tools: dict[str, ToolMetadata] = {}
    errors: list[str] = []
    if len(items) > max_tools:
        errors.append(f"it lists more than {max_tools:,} tools, and the rest is ignored")
    for number, item in enumerate(items[:max_tools], start=1):
        try:
            metadata = _read_item(item)
        except (TypeError, ValueError) as error:
            errors.append(f"tool {number}: {error}")
            continue
        if tools.setdefault(clean_name(metadata.name), metadata) is not metadata:
            errors.append(f"tool {number}: {metadata.name!r} is a duplicate, and the first one is kept")
    if errors:
        more = f" and {len(errors) - _REPORTED} more" if len(errors) > _REPORTED else ""
        problems.report(provider, "; ".join(errors[:_REPORTED]) + more)
    return ProviderTools(tools=tools)


def _read_item(item: Any) -> ToolMetadata:
    name, description, keywords = (_field(item, part) for part in ("name", "description", "keywords"))
    if not isinstance(name, str) or not clean_name(name):
        raise ValueError(f"a {type(item).__name__} without a name")
    if not isinstance(description, str | None):
        raise TypeError(f"the description of {name[:80]!r} is a {type(description).__name__}")
    words = (keywords,) if isinstance(keywords, str) else tuple(keywords or ())
    if not all(isinstance(word, str) for word in words):
        raise TypeError(f"the keywords of {name[:80]!r} are not texts")
    return ToolMetadata(name=name, description=description or "", keywords=words)


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def _describe(error: BaseException) -> str:
    """Describe an error in one line."""
    return f"{type(error).__name__}: {error}"[:500] if str(error) else type(error).__name__
