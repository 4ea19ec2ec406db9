"""An event loop on a thread of its own, with a state that is touched there alone."""

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
class _Running(Generic[S]):
    state: S
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread


class LoopThread(Generic[S]):
    """Answers questions from any number of threads and loops; it starts with the first one, and again after a fork."""

    def __init__(self, begin: Callable[[], S], end: Callable[[S], Awaitable[None]]) -> None:
        """Take what makes the state, and what frees it."""
        self._begin = begin
        self._end = end
        self._lock = threading.Lock()
        self._running: _Running[S] | None = None

    async def ask(self, question: Callable[[S], Awaitable[T]]) -> T:
        """Run a question on the thread and return its answer; who is cancelled cancels the question."""
        running = self._started()

        async def answered() -> T:
            return await question(running.state)

        future = asyncio.run_coroutine_threadsafe(answered(), running.loop)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if future.cancelled() and task is not None and not task.cancelling():
                raise StoreError("the registry was closed", hint="close it when nobody uses it any more") from None
            raise

    def close(self, *, wait: bool = True) -> None:
        """Cancel what is being answered, free the state and end the thread; a later question starts another."""
        with self._lock:
            running, self._running = self._running, None
        if running is None or not running.thread.is_alive():
            return
        running.loop.call_soon_threadsafe(running.loop.stop)
        if wait:
            running.thread.join()

    def _started(self) -> _Running[S]:
        with self._lock:
            if self._running is None or not self._running.thread.is_alive():
                state, loop = self._begin(), asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_serve, args=(loop, state, self._end), name="toolscout-registry", daemon=True
                )
                self._running = _Running(state, loop, thread)
                thread.start()
            return self._running


def _serve(loop: asyncio.AbstractEventLoop, state: S, end: Callable[[S], Awaitable[None]]) -> None:
    async def ended() -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await end(state)
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(ended())
    finally:
        loop.close()
