"""Processes of our own for work on strangers' text: such work can be stopped, and nothing else waits for it.

A pattern that backtracks holds the interpreter until it ends, also in a thread. So the screening of definitions and
the check of arguments by a schema, where they may be slow, run in a process that is killed when its time is over.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, Final

from toolscout.ports import WorkStoppedError

MAX_WORKERS: Final = 3
"""How many processes one pool has at most. A server has one of them at a time."""

_START_S = 30.0
_IDLE_S = 30.0
_MEMORY_BYTES = 2 << 30
_NICENESS = 5
_READY = b"\x00" * 8

_log = logging.getLogger("toolscout")


class WorkerPool:
    """A few processes that are started when there is work, and ended when there was none for a while."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_WORKERS)
        self._owners: dict[str, tuple[asyncio.Lock, int]] = {}
        self._idle: list[_Worker] = []
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, function: Callable[..., Any], *arguments: Any, owner: str, timeout_s: float) -> Any:
        """Call a function of this package in a process. Raise WorkStoppedError when its time is over.

        `owner` is the server that the work is for. One server never takes more than one process.
        """
        lock, users = self._owners.get(owner, (asyncio.Lock(), 0))
        self._owners[owner] = (lock, users + 1)
        try:
            async with lock, self._slots:
                return await self._run(function, arguments, timeout_s)
        finally:
            lock, users = self._owners.pop(owner)
            if users > 1:
                self._owners[owner] = (lock, users - 1)

    async def close(self) -> None:
        """End all processes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._idle:
            await self._idle.pop().end()

    async def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...], timeout_s: float) -> Any:
        try:
            worker = self._idle.pop() if self._idle else await _Worker.start()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            _log.warning("no process can be started to check definitions in (%s): it is done here", error)
            return await asyncio.to_thread(function, *arguments)
        try:
            async with asyncio.timeout(timeout_s):
                succeeded, value = await worker.call(function, arguments, timeout_s)
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            await worker.end()
            raise WorkStoppedError(f"it took longer than {timeout_s:g} s") from error
        except BaseException:
            await worker.end()
            raise
        self._idle.append(worker)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_IDLE_S, self._end_idle)
        if not succeeded:
            raise RuntimeError(f"{function.__name__}: {value}")
        return value

    def _end_idle(self) -> None:
        loop = asyncio.get_running_loop()
        for worker in [worker for worker in self._idle if loop.time() - worker.used_at >= _IDLE_S * 0.9]:
            self._idle.remove(worker)
            worker.kill()
        self._timer = loop.call_later(_IDLE_S, self._end_idle) if self._idle else None


class _Worker:
    """One process, which does one piece of work after the other."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.used_at = 0.0

    @classmethod
    async def start(cls) -> _Worker:
        """Start a process and wait until it has loaded its modules."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "toolscout.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"},
            start_new_session=True,
        )
        worker = cls(process)
        try:
            async with asyncio.timeout(_START_S):
                await worker._read(len(_READY))
        except BaseException:
            await worker.end()
            raise
        return worker

    async def call(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], timeout_s: float
    ) -> tuple[bool, Any]:
        """Return whether a function succeeded, and its result or the error as text."""
        request = pickle.dumps((function.__module__, function.__qualname__, arguments, timeout_s))
        assert self._process.stdin is not None  # noqa: S101 - a pipe, see `start`
        self._process.stdin.write(len(request).to_bytes(8, "big") + request)
        await self._process.stdin.drain()
        size = int.from_bytes(await self._read(8), "big")
        answer: tuple[bool, Any] = pickle.loads(await self._read(size))  # noqa: S301 - written by our own process
        self.used_at = asyncio.get_running_loop().time()
        return answer

    async def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - a pipe, see `start`
        return await self._process.stdout.readexactly(size)

    def kill(self) -> None:
        """Kill the process, and leave it to the loop to collect it."""
        with suppress(ProcessLookupError):
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def end(self) -> None:
        """Kill the process and wait until it is gone."""
        self.kill()
        await asyncio.shield(self._process.wait())


def _limit_process() -> None:
    """Give way to the gateway, and never take all memory of the machine."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        os.nice(_NICENESS)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    while head := requests.read(8):
        module, name, arguments, timeout_s = pickle.loads(requests.read(int.from_bytes(head, "big")))  # noqa: S301 - written by our own process
        # If the gateway is killed meanwhile, this ends the process, also in the middle of a pattern.
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, timeout_s * 2 + 1)
        try:
            answer = (True, getattr(importlib.import_module(module), name)(*arguments))
        except Exception as error:  # noqa: BLE001 - the gateway decides what a failure means
            answer = (False, f"{type(error).__name__}: {error}"[:1_000])
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        data = pickle.dumps(answer)
        answers.write(len(data).to_bytes(8, "big") + data)
        answers.flush()


def main() -> None:
    """Do the work that comes on standard input, until it is closed."""
    _limit_process()
    for module in ("toolscout.indexing.prepare", "toolscout.arguments", "jsonschema", "referencing"):
        importlib.import_module(module)
    answers, sys.stdout = sys.stdout, sys.stderr
    answers.buffer.write(_READY)
    answers.buffer.flush()
    _serve(sys.stdin.buffer, answers.buffer)


if __name__ == "__main__":
    main()
