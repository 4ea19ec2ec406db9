"""A few processes that are started when there is work, and ended when there was none for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from toolscout.ports import NoWorkerError, WorkStoppedError
from toolscout.worker.process import WorkerProcess
from toolscout.worker.turns import Owner, Turns

MAX_WORKERS: Final = 4
"""How many processes one pool has at most."""

_IDLE_S = 30.0


class WorkerPool:
    """Runs functions in processes that it stops when their time is over (`ports.Isolation`)."""

    def __init__(self) -> None:
        self._turns = Turns(MAX_WORKERS)
        self._idle: list[WorkerProcess] = []
        self._timer: asyncio.TimerHandle | None = None

    async def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        owner: Owner,
        timeout_s: float,
        slice_s: float | None = None,
    ) -> Any:
        """Call a function of this package in a process. See `ports.Isolation`."""
        async with self._turns.take(owner, timeout_s, slice_s) as turn:
            worker = await self._worker()
            try:
                async with turn.timeout():
                    succeeded, value = await worker.call(function, arguments, timeout_s)
            except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
                await worker.end()
                raise WorkStoppedError(f"it took longer than {turn.limit_s:g} s") from error
            except BaseException:
                await worker.end()
                raise
        self._idle.append(worker)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_IDLE_S, self._end_idle)
        if not succeeded:
            raise RuntimeError(f"{function.__name__}: {value}")
        return value

    async def close(self) -> None:
        """End all processes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._idle:
            await self._idle.pop().end()

    async def _worker(self) -> WorkerProcess:
        try:
            return self._idle.pop() if self._idle else await WorkerProcess.start()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise NoWorkerError(f"no process can be started ({type(error).__name__}: {error})") from error

    def _end_idle(self) -> None:
        loop = asyncio.get_running_loop()
        for worker in [worker for worker in self._idle if loop.time() - worker.used_at >= _IDLE_S * 0.9]:
            self._idle.remove(worker)
            worker.kill()
        self._timer = loop.call_later(_IDLE_S, self._end_idle) if self._idle else None
