"""Providers of one request: carried by a context variable, they reach its own tasks and threads, and no other."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token
from types import TracebackType

from toolscout.errors import InvalidValueError
from toolscout.ports import ToolProvider
from toolscout.registry.listing import Listings

_METHODS = ("list_tool_metadata", "get_tool", "call_tool")


class RequestScope:
    """The providers of one request, the nearest first, with what they said they have while the request lasts."""

    def __init__(self, providers: Sequence[ToolProvider], trouble: Sequence[str] = ()) -> None:
        """Take the providers, and what went wrong in finding them."""
        self.providers = tuple(providers)
        self.trouble = list(trouble)
        self.listings = Listings()


_scope: ContextVar[RequestScope | None] = ContextVar("toolscout_request", default=None)


def current_scope() -> RequestScope | None:
    """Return the scope of the request that is being served here, if it has one."""
    return _scope.get()


class request_providers:  # noqa: N801 - it reads as a function where it is used
    """Add tools to one request: `with request_providers(provider):`, or `async with`.

    The first provider wins where names are equal, a block within another wins over it, and all of them win over the
    tools that everybody has.
    """

    def __init__(self, *providers: ToolProvider) -> None:
        """Take what has tools for this request."""
        for provider in providers:
            check_provider(provider)
        self._providers = providers
        self._trouble: tuple[str, ...] = ()
        self._token: Token[RequestScope | None] | None = None

    @classmethod
    def without(cls, trouble: str) -> request_providers:
        """Make a block that adds nothing, and tells the registry why."""
        made = cls()
        made._trouble = (trouble,)
        return made

    def __enter__(self) -> None:
        """Begin the block."""
        if self._token is not None:
            raise InvalidValueError(
                "this request_providers block is already entered", hint="make a new one for each request"
            )
        around = _scope.get()
        outer = around.providers if around else ()
        trouble = around.trouble if around else ()
        self._token = _scope.set(RequestScope((*self._providers, *outer), (*self._trouble, *trouble)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the block: from here on it is as before."""
        if self._token is not None:
            _scope.reset(self._token)
            self._token = None

    async def __aenter__(self) -> None:
        """Begin the block."""
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the block."""
        self.__exit__(kind, error, trace)


def check_provider(provider: object) -> None:
    """Raise when an object is not a provider at all, which is its user's slip and not the provider's failure."""
    missing = [name for name in _METHODS if not callable(getattr(provider, name, None))]
    if missing or isinstance(provider, type):
        what = f"{provider.__name__} itself" if isinstance(provider, type) else f"a {type(provider).__name__}"
        raise InvalidValueError(
            f"{what} is not a provider" + (f": it has no {missing[0]}" if missing else ""),
            hint=f"a provider is an object with {', '.join(_METHODS)}: see toolscout.ToolProvider",
        )
