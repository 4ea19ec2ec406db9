"""What was found out a moment ago and need not be found out again: bounded in number and in time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """Remembers values for a while; the oldest go first."""

    def __init__(self, *, most: int, clock: Callable[[], float]) -> None:
        """Begin with nothing."""
        self._most = most
        self._clock = clock
        self._known: OrderedDict[Hashable, tuple[float, _Value]] = OrderedDict()

    def get(self, name: Hashable) -> tuple[_Value] | None:
        """Return what is remembered, in a tuple, as it may be None itself; or None."""
        known = self._known.get(name)
        return (known[1],) if known is not None and self._clock() < known[0] else None

    def last(self, name: Hashable) -> _Value | None:
        """Return what was known last, however long ago, for when it cannot be found out again."""
        known = self._known.get(name)
        return known[1] if known is not None else None

    def put(self, name: Hashable, value: _Value, for_s: float) -> None:
        """Remember a value for so many seconds."""
        self._known[name] = self._clock() + for_s, value
        self._known.move_to_end(name)
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def drop(self, name: Hashable) -> None:
        """Forget a value, if it is known."""
        self._known.pop(name, None)
