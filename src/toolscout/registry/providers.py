"""Asking a provider for one definition, and calling one of its tools: what it does wrong is its own loss, and told."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mcp.shared.exceptions import MCPError

from toolscout.errors import BadToolError, CallError, CallTimeoutError, ToolscoutError
from toolscout.ports import ToolProvider
from toolscout.registry.definitions import Definition, read_definition
from toolscout.registry.problems import Problems, name_of
from toolscout.registry.results import Result, meant
from toolscout.settings import Settings
from toolscout.sources.provider_calls import OverdueError, ask, to_result

_asked: ContextVar[frozenset[int]] = ContextVar("toolscout_asked", default=frozenset())
_acting: ContextVar[ToolProvider | None] = ContextVar("toolscout_acting", default=None)


def acts_as_provider(registry: object) -> bool:
    """Tell whether a registry is being asked by another: it then answers with its own tools, not with the request's."""
    return _acting.get() is registry


@contextmanager
def acting(provider: ToolProvider | None) -> Iterator[None]:
    """Say which provider is being asked within the block; None when the asking is over and a handler runs."""
    token = _acting.set(provider)
    try:
        yield
    finally:
        _acting.reset(token)


def is_being_asked(provider: ToolProvider) -> bool:
    """Tell whether asking this provider now would go round in a circle."""
    return id(provider) in _asked.get()


@contextmanager
def asking(provider: ToolProvider) -> Iterator[None]:
    """Remember within the block that this provider is being asked."""
    token = _asked.set(_asked.get() | {id(provider)})
    try:
        with acting(provider):
            yield
    finally:
        _asked.reset(token)


async def define_offered(
    provider: ToolProvider, name: str, settings: Settings, problems: Problems
) -> Definition | None:
    """Return a provider's definition, None when it has no such tool; CallError when it fails, which is reported."""
    if is_being_asked(provider):
        return None
    try:
        with asking(provider):
            raw = await ask(functools.partial(provider.get_tool, name), settings.provider_timeout_s)
        return None if raw is None else read_definition(raw, settings, name=name)
    except BadToolError as error:
        what = f"its definition of {name!r} cannot be used: {error.message}"
    except Exception as error:  # noqa: BLE001 - whatever a provider raises costs only its own tools
        what = f"its definition of {name!r} cannot be had: {said(error)}"
    problems.report(provider, what)
    raise CallError(
        f"{name} cannot be used now: {name_of(provider)}, which has it, does not answer as it should",
        hint="try again later; nothing was sent",
    )


async def call_offered(
    provider: ToolProvider,
    name: str,
    arguments: dict[str, Any],
    settings: Settings,
    problems: Problems,
    *,
    structured: bool = False,
) -> Result:
    """Call a provider's tool, exactly once, within the deadline of calls."""
    try:
        with acting(provider):
            value = await ask(functools.partial(provider.call_tool, name, arguments), settings.call_timeout_s)
    except OverdueError:
        problems.report(provider, f"a call of {name!r} took longer than {settings.call_timeout_s:g} s")
        raise CallTimeoutError(
            f"{name} gave no answer within {settings.call_timeout_s:g} s",
            hint="the call may have had its effect: look before you call again",
        ) from None
    except (ToolscoutError, MCPError):
        raise
    except Exception as error:
        if not meant(error):
            problems.report(provider, f"a call of {name!r} failed: {said(error)}")
        raise
    try:
        return to_result(value, structured=structured)
    except ValueError as error:
        problems.report(provider, f"the result of {name!r} is no result: {said(error)}")
        raise CallError(
            f"{name} was called, and its result cannot be read",
            hint="the call may have had its effect: look before you call again",
        ) from None


def said(error: BaseException) -> str:
    """Name an error in one line."""
    return f"{type(error).__name__}: {error}"[:500] if str(error) else type(error).__name__
