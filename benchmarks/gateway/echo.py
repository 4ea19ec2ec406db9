"""`python -m benchmarks.gateway.echo`: what the gateway costs, each figure beside the direct call of the same run.

All connections are open at once and measured in turn, so that the load of the machine affects all of them alike.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from mcp import Client

from benchmarks.data import machine, markdown, save
from benchmarks.gateway.peers import (
    ECHO,
    UV,
    free_port,
    gateway_command,
    listening,
    proxy_command,
    started,
    write_config,
)
from benchmarks.gateway.ready import time_to_first_list
from benchmarks.gateway.tokens import count_surface

warnings.simplefilter("ignore")

ROUNDS, CALLS = 40, 20
CLIENTS, CALLS_EACH = 200, 5
ERAS = {"2026-07-28": "2026-07-28", "handshake": "legacy"}
TEXT = {"text": "hello"}

Way = Callable[[], Awaitable[Any]]


async def through_gateway(client: Client) -> Way:
    """Return a call through the gateway, once the server behind it is indexed."""
    async with asyncio.timeout(60):
        while not (await client.call_tool("search_tools", {"query": "echo a text"})).structured_content["tools"]:
            await asyncio.sleep(0.1)
    return lambda: client.call_tool("call_tool", {"name": "echo__echo", "arguments": TEXT})


async def plain(client: Client) -> Way:
    """Return a call of the echo tool by its own name."""
    await client.list_tools()
    return lambda: client.call_tool("echo", TEXT)


async def rounds(ways: dict[str, Way]) -> dict[str, Any]:
    """Measure every way in turn; the ratio is the median over the rounds."""
    for call in ways.values():
        for _ in range(30):
            if (await call()).is_error:
                raise RuntimeError("echo failed")
    medians: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, call in ways.items():
            times = []
            for _ in range(CALLS):
                begun = time.perf_counter()
                await call()
                times.append((time.perf_counter() - begun) * 1_000)
            medians[name].append(statistics.median(times))
    direct = medians["direct"]
    return {
        name: {
            "p50_ms": round(statistics.median(values), 3),
            "ratio": round(statistics.median(value / base for value, base in zip(values, direct, strict=True)), 2),
        }
        for name, values in medians.items()
    }


async def over_stdio(folder: Path, era: str) -> dict[str, Any]:
    """Echo over standard input and output."""
    config = write_config(folder / "stdio.json", {"echo": {"command": sys.executable, "args": [ECHO]}})
    async with AsyncExitStack() as stack:

        async def opened(command: list[str], mode: str) -> Client:
            return await stack.enter_async_context(Client(started(command), mode=mode))

        ways = {
            "direct": await plain(await opened([sys.executable, ECHO], era)),
            "toolscout": await through_gateway(await opened(gateway_command(config), era)),
        }
        if UV.exists():
            ways["fastmcp proxy"] = await plain(await opened(proxy_command(config), "legacy"))
        return await rounds(ways)


async def over_http(folder: Path, era: str) -> dict[str, Any]:
    """Echo over streamable HTTP, at both ends."""
    echo, gateway, proxy = free_port(), free_port(), free_port()
    entry = {"type": "http", "url": f"http://127.0.0.1:{echo}/mcp"}
    config = write_config(folder / "http.json", {"echo": {**entry, "toolscout": {"private": True}}})
    plain_config = write_config(folder / "proxy.json", {"echo": entry})
    async with AsyncExitStack() as stack:
        addresses = [
            stack.enter_context(listening([sys.executable, ECHO, str(echo)], echo)),
            stack.enter_context(listening(gateway_command(config, "--http", str(gateway)), gateway)),
        ]
        direct, through = [await stack.enter_async_context(Client(url, mode=era)) for url in addresses]
        ways = {"direct": await plain(direct), "toolscout": await through_gateway(through)}
        if UV.exists():
            url = stack.enter_context(listening(proxy_command(plain_config, str(proxy)), proxy))
            ways["fastmcp proxy"] = await plain(await stack.enter_async_context(Client(url, mode="legacy")))
        return await rounds(ways)


async def many_clients(folder: Path, era: str) -> dict[str, Any]:
    """Let many clients connect, search nothing, and call at the same time; not one call may fail."""
    port = free_port()
    config = write_config(folder / "many.json", {"echo": {"command": sys.executable, "args": [ECHO]}})
    times: list[float] = []
    failures = 0

    async def one(url: str, ready: asyncio.Barrier) -> None:
        nonlocal failures
        async with Client(url, mode=era) as client:
            await client.list_tools()
            await ready.wait()
            for _ in range(CALLS_EACH):
                begun = time.perf_counter()
                got = await client.call_tool("call_tool", {"name": "echo__echo", "arguments": TEXT})
                times.append((time.perf_counter() - begun) * 1_000)
                failures += bool(got.is_error)

    with listening(gateway_command(config, "--http", str(port)), port) as url:
        async with Client(url) as client:
            await through_gateway(client)
        begun = time.perf_counter()
        ready = asyncio.Barrier(CLIENTS)
        await asyncio.gather(*(one(url, ready) for _ in range(CLIENTS)))
        took_s = time.perf_counter() - begun
    times.sort()
    return {
        "clients": CLIENTS,
        "calls": len(times),
        "failed": failures,
        "p50_ms": round(times[len(times) // 2], 1),
        "p99_ms": round(times[int(len(times) * 0.99)], 1),
        "calls_per_s": round(len(times) / took_s),
    }


async def measure() -> None:
    """Measure everything and write it down."""
    found: dict[str, Any] = {"machine": machine(), "stdio": {}, "http": {}, "clients": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for said, era in ERAS.items():
            found["stdio"][said] = await over_stdio(folder, era)
            found["http"][said] = await over_http(folder, era)
            found["clients"][said] = await many_clients(folder, era)
        found["ready"] = time_to_first_list(folder)
        found["tokens"] = await count_surface(folder)
    save("gateway", found, report(found))


def report(found: dict[str, Any]) -> str:
    """Write the tables."""
    echo = [
        [f"{kind}, {era}", way, values["p50_ms"], values["ratio"]]
        for kind in ("stdio", "http")
        for era, ways in found[kind].items()
        for way, values in ways.items()
    ]
    many = [
        [era, row["clients"], row["calls"], row["failed"], row["p50_ms"], row["p99_ms"], row["calls_per_s"]]
        for era, row in found["clients"].items()
    ]
    tokens, ready = found["tokens"], found["ready"]
    return "\n\n".join(
        [
            "# The gateway",
            "`python -m benchmarks.gateway.echo`, on " + ", ".join(f"{k} {v}" for k, v in found["machine"].items()),
            "Echo, interleaved rounds; the ratio is the median over rounds. The proxy is called by a handshake client.",
            markdown(["transport, client", "way", "p50 ms", "x direct"], echo),
            "Clients at once, over HTTP, all from one process on the same machine.",
            markdown(["client", "clients", "calls", "failed", "p50 ms", "p99 ms", "calls/s"], many),
            f"From the start of the process to the answer to `tools/list`, {ready['servers']} servers in the config, "
            f"{ready['dead']} of them dead: median {ready['median_s']} s, slowest {ready['slowest_s']} s "
            f"of {ready['runs']} runs; all live tools searchable after {ready['indexed_s']} s.",
            f"Tokens (characters / 4) over {tokens['tools']:,} tools of {tokens['servers']} real servers:",
            markdown(
                ["what an agent reads", "tokens"],
                [
                    ["every definition", f"{tokens['full_list']:,}"],
                    ["the compact surface", f"{tokens['compact']:,}"],
                    ["an answer to a search, median", f"{tokens['search_median']:,}"],
                    ["an answer to a search, largest", f"{tokens['search_largest']:,}"],
                ],
            ),
        ]
    )


if __name__ == "__main__":
    asyncio.run(measure())
