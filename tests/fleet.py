"""Several `toolscout serve --http` over one database, a load balancer in front of them, and busy clients."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from httpx2 import ConnectError
from mcp import Client

from servers import free_port

WAIT_S = 30.0
MODERN = "2026-07-28"

Request = tuple[str, dict[str, Any]]
_REQUESTS: list[Request] = [
    ("search_tools", {"query": "say something back", "limit": 3}),
    ("call_tool", {"name": "fake__echo", "arguments": {"text": "hello"}}),
]
_REQUESTS_EACH = 20


def ask(port: int, path: str) -> tuple[int, dict[str, Any]]:
    """Send a GET request to a replica. The status is 0 if nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException):
        return 0, {}
    finally:
        connection.close()


class Replica:
    """One process, on ports that it keeps over a restart."""

    def __init__(self, folder: Path, store: str, number: int, *options: str) -> None:
        self.folder, self.store, self.number, self.options = folder, store, number, options
        self.port, self.diagnostics = free_port(), free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False
        self.killed_at = 0.0

    @property
    def url(self) -> str:
        """Where it serves MCP."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        """Start the process. `until` waits until it is ready."""
        command = [sys.executable, "-m", "toolscout", "serve", "--config", str(self.folder / "mcp.json")]
        command += ["--store", self.store, "--http", str(self.port), "--diagnostics", str(self.diagnostics)]
        command += self.options
        environment = {**os.environ, "TOOLSCOUT_DRAIN_S": "1", "TOOLSCOUT_EMBEDDER": "none"}
        with (self.folder / f"serve-{self.number}.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)

    def kill(self) -> None:
        """Kill the process."""
        assert self.process is not None
        self.killed_at = time.monotonic()
        self.process.kill()
        self.process.wait(WAIT_S)

    async def stop(self) -> int:
        """Ask it to end, as an orchestrator does, and return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait, WAIT_S)

    def end(self) -> None:
        """End the process if it runs."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT_S)

    def log(self) -> str:
        """Return what it wrote."""
        return (self.folder / f"serve-{self.number}.log").read_text("utf-8", "replace")

    async def until(self, *, ready: bool) -> float:
        """Wait until `/readyz` says that it is ready, or not ready. Return how long that took."""
        began = time.monotonic()
        while (await asyncio.to_thread(ask, self.diagnostics, "/readyz"))[0] != (200 if ready else 503):
            assert time.monotonic() - began < WAIT_S, self.log()[-3_000:]
            await asyncio.sleep(0.02)
        return time.monotonic() - began


@dataclass
class Load:
    """What clients saw: answers by replica, and the failures that a load balancer could not hide."""

    answers: dict[int, int] = field(default_factory=dict)
    stale: int = 0
    in_flight: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many requests were answered."""
        return sum(self.answers.values())

    def note(self, replica: Replica, request: Request, result: Any) -> None:
        """Count an answer."""
        if result.is_error:
            self.failures.append(f"replica {replica.number}: {request}: {result.content}")
            return
        self.answers[replica.number] = self.answers.get(replica.number, 0) + 1
        self.stale += bool((result.structured_content or {}).get("metadata", {}).get("stale"))

    async def grows(self, by: int) -> None:
        """Wait until so many more requests were answered."""
        wanted = self.total + by
        async with asyncio.timeout(WAIT_S):
            while self.total < wanted:  # noqa: ASYNC110 - an event for each answer would slow the clients down
                await asyncio.sleep(0.01)


class Fleet:
    """The replicas, and a load balancer's view of them."""

    def __init__(self, folder: Path, store: str, count: int) -> None:
        self.replicas = [Replica(folder, store, number) for number in range(count)]
        self._turn = itertools.count()

    async def start(self) -> None:
        """Start all at once and wait until every one is ready."""
        for replica in self.replicas:
            replica.start()
        await asyncio.gather(*(replica.until(ready=True) for replica in self.replicas))

    def end(self) -> None:
        """End whatever is left."""
        for replica in self.replicas:
            replica.end()

    @asynccontextmanager
    async def under_load(self, clients: int = 4) -> AsyncIterator[Load]:
        """Let clients search and call through the load balancer until the end of the block."""
        load, stop = Load(), asyncio.Event()
        for replica in self.replicas:
            replica.ready = True
        probing = asyncio.create_task(self._probe(stop))
        working = [asyncio.create_task(self._work(load, stop)) for _ in range(clients)]
        try:
            yield load
        finally:
            stop.set()
            async with asyncio.timeout(WAIT_S):
                await asyncio.gather(probing, *working)

    async def _probe(self, stop: asyncio.Event) -> None:
        """Ask every replica for readiness, as load balancers do."""
        while not stop.is_set():
            answers = await asyncio.gather(
                *(asyncio.to_thread(ask, replica.diagnostics, "/readyz") for replica in self.replicas)
            )
            for replica, (status, _) in zip(self.replicas, answers, strict=True):
                replica.ready = status == 200
            await asyncio.sleep(0.05)

    def _pick(self) -> Replica:
        ready = [replica for replica in self.replicas if replica.ready] or [
            replica for replica in self.replicas if replica.process and replica.process.poll() is None
        ]
        return ready[next(self._turn) % len(ready)]

    async def _work(self, load: Load, stop: asyncio.Event) -> None:
        """Send one request after the other. A request that never reached a replica goes to the next one."""
        requests = itertools.cycle(_REQUESTS)
        unsent: Request | None = None
        while not stop.is_set():
            replica = self._pick()
            unsent = await self._talk(load, replica, stop, requests, unsent)

    async def _talk(
        self, load: Load, replica: Replica, stop: asyncio.Event, requests: Iterator[Request], waiting: Request | None
    ) -> Request | None:
        """Send some requests to one replica. Return the request that could not be sent."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(WAIT_S), Client(replica.url, mode=MODERN) as client:
                for _ in range(_REQUESTS_EACH):
                    if stop.is_set() or (not replica.ready and any(other.ready for other in self.replicas)):
                        break
                    waiting = waiting or next(requests)
                    began = time.monotonic()
                    load.note(replica, waiting, await client.call_tool(*waiting))
                    waiting = None
        except Exception as error:  # noqa: BLE001 - whatever a client sees is a failed request
            if replica.killed_at and began <= replica.killed_at:
                load.in_flight += 1
            elif _never_sent(error):
                replica.ready = False
                return waiting
            elif waiting is not None:
                load.failures.append(f"replica {replica.number}: {waiting}: {error!r}")
        return None


def _never_sent(error: Exception) -> bool:
    """Tell whether the request never reached a replica. In every other case it may have taken effect."""
    return ExceptionGroup("", [error]).subgroup(ConnectError) is not None
