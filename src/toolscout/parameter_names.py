"""What documents of other systems, and models that guess, call a parameter. Toolscout accepts these names too."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "limit": ("top_k", "max_results", "k"),
    "max_results": ("limit", "top_k", "k"),
    "detail": ("detail_level",),
    "match": ("match_mode",),
    "name": ("tool_name", "key"),
    "names": ("name", "tool_name", "tool_names", "key", "keys"),
    "key": ("name", "tool_name"),
    "natural_language_query": ("query",),
}

_Class = TypeVar("_Class", bound=type)


def with_our_names(arguments: Mapping[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Rename arguments that go by another name, where there is such a parameter and it was not given."""
    renamed = dict(arguments)
    for name in parameters:
        others = (other for other in OTHER_NAMES.get(name, ()) if other in renamed and other not in parameters)
        other = next(others, None)
        if other is not None and name not in renamed:
            renamed[name] = renamed.pop(other)
    return renamed


def accepts_other_names(owner: _Class) -> _Class:
    """Let the public coroutine methods of a class take their keyword arguments by other names too."""
    for name, method in vars(owner).copy().items():
        parameters = inspect.signature(method).parameters.keys() if inspect.iscoroutinefunction(method) else ()
        if not name.startswith("_") and OTHER_NAMES.keys() & set(parameters):
            setattr(owner, name, _renaming(method, parameters))
    return owner


def _renaming(method: Callable[..., Awaitable[Any]], parameters: Collection[str]) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def call(*arguments: Any, **options: Any) -> Any:
        return await method(*arguments, **with_our_names(options, parameters))

    return call
