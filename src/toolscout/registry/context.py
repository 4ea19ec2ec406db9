"""The SDK's request context, carried to handlers that ask for it, through providers and registries between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mcp.server.mcpserver import Context

_current: ContextVar[Context[Any, Any] | None] = ContextVar("toolscout_sdk_context", default=None)


@contextmanager
def calling_in(context: Context[Any, Any]) -> Iterator[None]:
    """Make this the context of every handler that is called within the block."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def current_context() -> Context[Any, Any]:
    """Return the context of the request; outside of one, a context that says so when it is used."""
    return _current.get() or Context()
