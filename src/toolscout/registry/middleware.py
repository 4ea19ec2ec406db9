"""An ASGI middleware that gives each request the providers that are derived from it."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from toolscout.ports import ToolProvider
from toolscout.registry.request import request_providers
from toolscout.settings import Settings
from toolscout.sources.provider_calls import ask

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import ASGIApp, Receive, Scope, Send

_log = logging.getLogger("toolscout")

Derive = Callable[["HTTPConnection"], Any]


class RequestProvidersMiddleware:
    """Serves an app with `derive(connection)`'s providers: one, several, or None; synchronous or asynchronous.

    A derivation that fails is logged, and reported by the registry that the request uses; the request goes on without
    its providers, which gives it fewer tools and never another's.
    """

    def __init__(self, app: ASGIApp, derive: Derive, *, settings: Settings | None = None) -> None:
        """Take the app, and what finds a request's providers by its headers, cookies, user and state."""
        self.app = app
        self._derive = derive
        self._settings = settings or Settings.from_env()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; what is neither HTTP nor a websocket passes untouched."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        with await self._block(scope):
            await self.app(scope, receive, send)

    async def _block(self, scope: Scope) -> request_providers:
        from starlette.requests import HTTPConnection

        derive = functools.partial(self._derive, HTTPConnection(scope))
        try:
            return request_providers(*_each(await ask(derive, self._settings.provider_timeout_s)))
        except Exception as error:  # noqa: BLE001 - fewer tools, never another's and never a failed request
            _log.exception("the providers of a request cannot be derived")
            return request_providers.without(f"its providers cannot be derived: {type(error).__name__}")


def _each(found: ToolProvider | Iterable[ToolProvider] | None) -> tuple[ToolProvider, ...]:
    if found is None:
        return ()
    if isinstance(found, Iterable) and not hasattr(found, "list_tool_metadata"):
        return tuple(found)
    return (found,)  # type: ignore[return-value]  # checked where the block begins
