"""Clients of one MCP server over HTTP, as a process of its own: `clients.py < plan.json`, which prints what they saw.

Each client has one connection, sends one request after the other, and reads every answer whole. They know just enough
HTTP and JSON-RPC for that, so that the server is measured and not they.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import resource
import sys
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
CLIENT = {"name": "load", "version": "1"}


@dataclass
class Plan:
    """What the clients do."""

    port: int
    clients: int
    seconds: float
    era: str
    tool: str
    arguments: list[dict[str, Any]]
    """They are sent in turn."""
    key: str = ""
    think_s: float = 0.0
    """How long a client waits before its next request."""


@dataclass
class Seen:
    """What the clients saw."""

    times_ms: list[float] = field(default_factory=list)
    refused: int = 0
    """Requests that were answered with 429."""
    failed: int = 0
    reasons: set[str] = field(default_factory=set)


class Connection:
    """One kept connection, which is opened anew where the server closed it between two requests."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._session = ""
        self._numbers = itertools.count(1)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Connect, and shake hands where the era wants it."""
        if self._plan.era == "modern":
            return
        client = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT}
        await self.send("initialize", client)
        await self.send("notifications/initialized", {}, notify=True)

    async def call(self, arguments: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Call the tool of the plan; return the status and the JSON-RPC answer."""
        return await self.send("tools/call", {"name": self._plan.tool, "arguments": arguments})

    async def send(self, method: str, params: dict[str, Any], *, notify: bool = False) -> tuple[int, dict[str, Any]]:
        """Send one message and read the answer."""
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if not notify:
            body["id"] = next(self._numbers)
        head = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self._plan.port}",
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
        ]
        if self._plan.key:
            head.append(f"Authorization: Bearer {self._plan.key}")
        if self._plan.era == "modern":
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": CLIENT,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            head += [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}", f"Mcp-Name: {params.get('name', '')}"]
        elif self._session:
            head += [f"MCP-Protocol-Version: {HANDSHAKE}", f"Mcp-Session-Id: {self._session}"]
        content = json.dumps(body).encode()
        request = "\r\n".join([*head, f"Content-Length: {len(content)}", "", ""]).encode() + content
        if self._writer is None or self._writer.is_closing():
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._plan.port, limit=2**22)
        self._writer.write(request)
        return await self._answer()

    async def _answer(self) -> tuple[int, dict[str, Any]]:
        assert self._reader is not None
        assert self._writer is not None
        top = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in top[1:])}
        self._session = headers.get("mcp-session-id", self._session)
        content = await self._content(headers)
        if headers.get("connection") == "close":
            self._writer.close()
        if headers.get("content-type", "").startswith("text/event-stream"):
            events = [line[6:] for line in content.split(b"\n") if line.startswith(b"data: ")]
            content = events[-1]
        status = int(top[0].split()[1])
        return status, json.loads(content) if content.strip() else {}

    async def _content(self, headers: dict[str, str]) -> bytes:
        assert self._reader is not None
        if "content-length" in headers:
            return await self._reader.readexactly(int(headers["content-length"]))
        if "chunked" not in headers.get("transfer-encoding", ""):
            return b""
        parts = []
        while size := int((await self._reader.readline()).split(b";")[0], 16):
            parts.append(await self._reader.readexactly(size))
            await self._reader.readline()
        await self._reader.readline()
        return b"".join(parts)


async def run_client(plan: Plan, seen: Seen, arguments: Any, ends: list[float]) -> None:
    """Send requests until the time is over. A connection that breaks is a failure."""
    connection = Connection(plan)
    try:
        await connection.open()
    except (OSError, asyncio.IncompleteReadError) as error:
        seen.failed += 1
        seen.reasons.add(f"opening: {type(error).__name__}")
        return
    while (started := perf_counter()) < ends[0]:
        try:
            status, answer = await connection.call(next(arguments))
        except (OSError, asyncio.IncompleteReadError) as error:
            seen.failed += 1
            seen.reasons.add(type(error).__name__)
            connection = Connection(plan)
            await connection.open()
            continue
        result = answer.get("result", {})
        if status == 429 or "limit_reached" in json.dumps(answer)[:400]:
            seen.refused += 1
        elif status != 200 or "content" not in result or result.get("isError"):
            seen.failed += 1
            seen.reasons.add(f"{status} {json.dumps(answer)[:160]}")
        else:
            seen.times_ms.append((perf_counter() - started) * 1_000)
        if plan.think_s:
            await asyncio.sleep(plan.think_s)


async def run(plan: Plan) -> dict[str, Any]:
    """Run all clients at once and sum up."""
    seen, ends = Seen(), [perf_counter() + plan.seconds]
    arguments = itertools.cycle(plan.arguments)
    started = perf_counter()
    await asyncio.gather(*(run_client(plan, seen, arguments, ends) for _ in range(plan.clients)))
    took_s = perf_counter() - started
    times = sorted(seen.times_ms)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "clients": plan.clients,
        "answered": len(times),
        "per_s": round(len(times) / took_s, 1),
        "p50_ms": round(times[len(times) // 2], 2) if times else None,
        "p99_ms": round(times[int(len(times) * 0.99)], 2) if times else None,
        "refused": seen.refused,
        "failed": seen.failed,
        "reasons": sorted(seen.reasons)[:5],
        "seconds": round(took_s, 2),
        "client_cpu_s": round(used.ru_utime + used.ru_stime, 2),
    }


if __name__ == "__main__":
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    print(json.dumps(asyncio.run(run(Plan(**json.load(sys.stdin))))))
