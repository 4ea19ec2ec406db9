"""One process for work on strangers' text, seen from the gateway."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from toolscout.worker.child import READY

_START_S = 30.0


class WorkerProcess:
    """One process, which does one piece of work after the other."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.used_at = 0.0

    @classmethod
    async def start(cls) -> WorkerProcess:
        """Start a process and wait until it has loaded its modules."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "toolscout.worker.child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"},
            start_new_session=True,
        )
        worker = cls(process)
        try:
            async with asyncio.timeout(_START_S):
                await worker._read(len(READY))
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
