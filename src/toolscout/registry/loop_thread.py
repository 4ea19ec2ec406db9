"""An event loop on its own thread, with a state that only this thread uses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from toolscout.errors import StoreError

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _RunningLoop(Generic[S]):
    state: S
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread


class LoopThread(Generic[S]):
    """Runs coroutines for any number of threads and loops. The thread starts at first use, and again after a fork."""

    def __init__(self, make_state: Callable[[], S], close_state: Callable[[S], Awaitable[None]]) -> None:
        """Take the functions that make and close the state. Each start of the thread makes a new state."""
        self._make_state = make_state
        self._close_state = close_state
        self._lock = threading.Lock()
        self._running: _RunningLoop[S] | None = None

    async def run(self, function: Callable[[S], Awaitable[T]]) -> T:
        """Run an async function with the state on the thread. Cancelling this call cancels the function."""
        running = self._start()

        async def call() -> T:
            return await function(running.state)

        future = asyncio.run_coroutine_threadsafe(call(), running.loop)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if future.cancelled() and task is not None and not task.cancelling():
                raise StoreError(
                    "the registry was closed during a search", hint="close it when nothing uses it"
                ) from None
            raise

    def close(self, *, wait: bool = True) -> None:
        """Cancel running functions, close the state and end the thread. A later `run` starts another."""
        with self._lock:
            running, self._running = self._running, None
        if running is None or not running.thread.is_alive():
            return
        running.loop.call_soon_threadsafe(running.loop.stop)
        if wait:
            running.thread.join()

    def _start(self) -> _RunningLoop[S]:
        with self._lock:
            if self._running is None or not self._running.thread.is_alive():
                state, loop = self._make_state(), asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_serve, args=(loop, state, self._close_state), name="toolscout-registry", daemon=True
                )
                self._running = _RunningLoop(state, loop, thread)
                thread.start()
            return self._running


def _serve(loop: asyncio.AbstractEventLoop, state: S, close_state: Callable[[S], Awaitable[None]]) -> None:
    async def finish() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await close_state(state)
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(finish())
    finally:
        loop.close()
