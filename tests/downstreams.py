"""Helpers for tests with live servers: fake servers and their logs, opened servers, calls to a healthy server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolscout.config import Config, ServerConfig
from toolscout.downstream.servers import DownstreamServers
from toolscout.models import Caller
from toolscout.settings import Settings

FAKE = str(Path(__file__).parent / "fake_server.py")
ANYONE = Caller()
WAIT_S = 20.0
"""No test waits longer for anything."""

QUICK = Settings(
    connect_timeout_s=10.0,
    call_timeout_s=10.0,
    backoff_first_s=0.05,
    backoff_most_s=0.2,
    reindex_interval_s=0.05,
    max_line_bytes=1_048_576,
)
"""Settings with short pauses."""


async def until(condition: Callable[[], bool]) -> None:
    """Poll the state of another process until the condition is true, for a bounded time."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - another process cannot set an event here
            await asyncio.sleep(0.005)


@dataclass(frozen=True)
class Fake:
    """A fake server and the messages that it received."""

    config: ServerConfig
    log: Path

    def received(self, method: str | None = None) -> list[dict[str, Any]]:
        """Return the messages that all its processes received."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        messages = [json.loads(line) for line in lines]
        return [item for item in messages if method is None or item.get("method") == method]

    def calls(self, name: str) -> list[dict[str, Any]]:
        """Return the received calls of one tool."""
        return [item for item in self.received("tools/call") if item["params"]["name"] == name]

    @property
    def starts(self) -> list[int]:
        """Return the ids of all its processes, including those that ended."""
        return [item["started"] for item in self.received() if "started" in item]

    async def started(self, count: int) -> None:
        """Wait until `count` processes of it have started."""
        await until(lambda: len(self.starts) >= count)

    async def until(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until `count` messages of a method have arrived."""
        await until(lambda: len(self.received(method)) >= count)
        return self.received(method)


def fake(folder: Path, title: str = "fake", *options: str, **fields: Any) -> Fake:
    """Write the config of a fake server."""
    log = folder / f"{title}.log"
    fields = {"timeout_s": 10.0, **fields}
    config = ServerConfig(
        title=title, transport="stdio", command=sys.executable, args=(FAKE, str(log), *options), **fields
    )
    return Fake(config, log)


@dataclass
class Opened:
    """Running servers and the changes that they reported."""

    downstream: DownstreamServers
    changes: list[str] = field(default_factory=list)

    async def state(self, key: str, *states: str) -> Any:
        """Wait until a server is in one of these states."""
        await until(lambda: self.downstream.servers[key].status.state in states)
        return self.downstream.servers[key]

    async def changed(self, key: str, count: int) -> None:
        """Wait until `count` changes of a server were reported."""
        await until(lambda: self.changes.count(key) >= count)

    async def call(self, key: str, tool: str, arguments: Any = None, **options: Any) -> Any:
        """Call a tool."""
        options = {"caller": ANYONE, **options}
        return await self.downstream.servers[key].call_tool(tool, arguments or {}, **options)


@asynccontextmanager
async def opened(
    *configs: ServerConfig,
    settings: Settings = QUICK,
    ready: bool = True,
    on_change: Callable[[str], Awaitable[None]] | None = None,
) -> AsyncIterator[Opened]:
    """Start servers, wait until they are ready unless `ready` is false, and close them afterwards."""
    downstream = DownstreamServers(Config(servers=configs), settings)
    here = Opened(downstream)

    async def record(key: str) -> None:
        here.changes.append(key)
        if on_change is not None:
            await on_change(key)

    await downstream.start(record)
    try:
        if ready:
            for key in downstream.servers:
                await here.state(key, "ready")
        yield here
    finally:
        async with asyncio.timeout(WAIT_S):
            await downstream.close()


@asynccontextmanager
async def healthy(here: Opened, key: str = "healthy", least: int = 50) -> AsyncIterator[None]:
    """Call a healthy server while the block runs, and at least `least` times. No call may fail."""
    stop = asyncio.Event()
    done = 0

    async def calls() -> None:
        nonlocal done
        while done < least or not stop.is_set():
            text = str(done)
            result = await here.call(key, "echo", {"text": text})
            assert result["content"][0]["text"] == text
            done += 1
            await asyncio.sleep(0.002)

    task = asyncio.create_task(calls())
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(WAIT_S):
            await task
    assert done >= least


@contextmanager
def bounded_memory(most_mib: int = 48) -> Iterator[None]:
    """Fail if this process grows by more than `most_mib` while the block runs."""
    before, peak, stop = resident_mib(), [0.0], threading.Event()

    def look() -> None:
        while not stop.wait(0.01):
            peak[0] = max(peak[0], resident_mib())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    assert peak[0] - before < most_mib, f"grew by {peak[0] - before:.0f} MiB"


def resident_mib(pid: int | None = None) -> float:
    """Return the resident memory of a process, by default this one."""
    pages = int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def alive(pid: int) -> bool:
    """Return whether a process is running."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(*pids: int) -> bool:
    """Wait for a bounded time until none of these processes is running."""
    ends = time.monotonic() + WAIT_S
    while any(alive(pid) for pid in pids):
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True
