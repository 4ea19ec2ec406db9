"""Providers of one request. A context variable makes them visible to the request's own tasks and threads only."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

from toolscout.errors import InvalidValueError
from toolscout.ports import ToolProvider
from toolscout.registry.providers import ProviderToolsCache, check_provider
from toolscout.settings import Settings
from toolscout.sources.provider_calls import ask

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import ASGIApp, Receive, Scope, Send

_log = logging.getLogger("toolscout")


class RequestScope:
    """The providers of one request, innermost block first, and a cache of their tools."""

    def __init__(self, providers: Sequence[ToolProvider], problems: Sequence[str] = ()) -> None:
        """Take the providers, and the problems that came up while deriving them."""
        self.providers = tuple(providers)
        self.problems = list(problems)
        self.tools = ProviderToolsCache()


_scope: ContextVar[RequestScope | None] = ContextVar("toolscout_request", default=None)


def current_scope() -> RequestScope | None:
    """Return the scope of the current request, or None."""
    return _scope.get()


class request_providers:  # noqa: N801 - it reads as a function where it is used
    """Add tools to one request: `with request_providers(provider):`, or `async with`.

    On equal names, the first provider has precedence, an inner block has precedence over an outer one, and all of them
    have precedence over the shared tools.
    """

    def __init__(self, *providers: ToolProvider) -> None:
        for provider in providers:
            check_provider(provider)
        self._providers = providers
        self._problems: tuple[str, ...] = ()
        self._token: Token[RequestScope | None] | None = None

    @classmethod
    def without(cls, problem: str) -> request_providers:
        """Make a block without providers, but with a problem for the registry to report."""
        block = cls()
        block._problems = (problem,)
        return block

    def __enter__(self) -> None:
        """Begin the block."""
        if self._token is not None:
            raise InvalidValueError(
                "this request_providers block is already entered", hint="make a new one for each request"
            )
        outer = _scope.get()
        providers = outer.providers if outer else ()
        problems = outer.problems if outer else ()
        self._token = _scope.set(RequestScope((*self._providers, *providers), (*self._problems, *problems)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the block and restore the outer one."""
        if self._token is not None:
            _scope.reset(self._token)
            self._token = None

    async def __aenter__(self) -> None:
        """Begin the block."""
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the block and restore the outer one."""
        self.__exit__(kind, error, trace)


class RequestProvidersMiddleware:
    """ASGI middleware: each request is served with the providers that `derive(connection)` returns.

    `derive` may be synchronous or asynchronous, and return one provider, several, or None. When it fails, the request
    continues without its providers, and never with those of another request. The failure is logged and reported.
    """

    def __init__(
        self, app: ASGIApp, derive: Callable[[HTTPConnection], Any], *, settings: Settings | None = None
    ) -> None:
        """Take the app, and a function that derives the providers from the headers, cookies, user or state."""
        self.app = app
        self._derive = derive
        self._settings = settings or Settings.from_env()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request. Events other than HTTP and websockets pass unchanged."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        with await self._block(scope):
            await self.app(scope, receive, send)

    async def _block(self, scope: Scope) -> request_providers:
        from starlette.requests import HTTPConnection

        derive = functools.partial(self._derive, HTTPConnection(scope))
        try:
            return request_providers(*_as_tuple(await ask(derive, self._settings.provider_timeout_s)))
        except Exception as error:  # noqa: BLE001 - the request continues with fewer tools
            _log.exception("the providers of a request cannot be derived")
            return request_providers.without(f"its providers cannot be derived: {type(error).__name__}")


def _as_tuple(providers: ToolProvider | Iterable[ToolProvider] | None) -> tuple[ToolProvider, ...]:
    if providers is None:
        return ()
    if isinstance(providers, Iterable) and not hasattr(providers, "list_tool_metadata"):
        return tuple(providers)
    return (providers,)  # type: ignore[return-value]  # checked where the block begins
