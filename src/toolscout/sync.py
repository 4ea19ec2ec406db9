"""Toolscout without asyncio, for notebooks, Flask and scripts: the same methods, which wait for their result.

    from toolscout.sync import Scout

    with Scout.open(tools="tools.jsonl") as scout:
        answer = scout.search_tools("email the invoice", limit=3)

It works where an event loop runs already, as in a notebook, because it has a loop and a thread of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from toolscout.errors import StoreError
from toolscout.scout import Scout as AsyncScout

__all__ = ["Scout", "SyncScout"]

_Result = TypeVar("_Result")


class SyncScout:
    """A `toolscout.Scout` whose methods are not coroutines. It may be used from any thread."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Open a scout with the arguments of `toolscout.Scout.open`, on a thread of its own. It is ready at once."""
        scout = AsyncScout.open(*arguments, **options)
        self._loop = asyncio.new_event_loop()
        # A daemon: a scout that is left open does not keep the process alive, which frees everything when it ends.
        self._thread = threading.Thread(target=self._loop.run_forever, name="toolscout-sync", daemon=True)
        self._thread.start()
        self._scout = scout
        try:
            self.run(scout.__aenter__())
        except BaseException:
            self._stop()
            raise

    @classmethod
    def open(cls, *arguments: Any, **options: Any) -> SyncScout:
        """Do the same, as `toolscout.Scout.open` does it."""
        return cls(*arguments, **options)

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Wait for a coroutine, such as `picked.call(tool_call)`, on the scout's own loop."""
        if self._loop.is_closed():
            work.close()
            raise StoreError("this scout is closed", hint="open another one, or use it inside its `with` block")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """End every session and close the store. A second call does nothing."""
        if not self._loop.is_closed():
            self.run(self._scout.__aexit__())
            self._stop()

    def __enter__(self) -> SyncScout:
        """Return the scout, which is open already."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()

    def __getattr__(self, name: str) -> Any:
        """Return a method of `toolscout.Scout` that waits for its result, or any other public attribute."""
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._scout, name)
        return _waiting(value, self.run) if inspect.iscoroutinefunction(value) else value

    def __dir__(self) -> list[str]:
        """List the methods of `toolscout.Scout` too."""
        return sorted({*super().__dir__(), *(name for name in dir(self._scout) if not name.startswith("_"))})

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


Scout = SyncScout


def _waiting(method: Callable[..., Any], run: Callable[[Coroutine[Any, Any, Any]], Any]) -> Callable[..., Any]:
    @wraps(method)
    def wait(*arguments: Any, **options: Any) -> Any:
        return run(method(*arguments, **options))

    return wait
