"""`python -m benchmarks.gateway.telemetry`: what telemetry adds to a call, and how long `/metrics` takes.

Two gateways in front of the same echo server are called in turn. One has everything on: all spans go to a collector,
the log is JSON, requests may be logged, and its metrics are read every second. What it adds is the median of the
differences, one by one.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Counter as PeerCounter
from prometheus_client import Gauge as PeerGauge
from prometheus_client import Histogram as PeerHistogram

from benchmarks.data import machine, markdown, save
from benchmarks.gateway.echo import ERAS, through_gateway
from benchmarks.gateway.peers import ECHO, free_port, gateway_command, listening, write_config
from toolscout import Scout, Settings
from toolscout.config import Config, ServerConfig
from toolscout.gateway.diagnostics import Readiness, serve_diagnostics
from toolscout.gateway.live_metrics import LiveMetrics
from toolscout.gateway.server import Gateway
from toolscout.telemetry import Metrics
from toolscout.telemetry.metrics import _CALL_S

CALLS, WARM = 300, 30
SERVERS, READS = 1_000, 60
OUTCOMES = ("ok", "tool_error", "call_failed")
COLLECTOR = str(Path(__file__).parent / "collector.py")


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Set variables for the processes that start in the block."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


async def read_every_second(port: int) -> None:
    """Read the metrics as Prometheus does, only more often."""
    async with httpx2.AsyncClient() as reader:
        while True:
            with suppress(httpx2.HTTPError):
                await reader.get(f"http://127.0.0.1:{port}/metrics")
            await asyncio.sleep(1)


async def calls(folder: Path, era: str) -> dict[str, Any]:
    """Call through both gateways in turn."""
    off, on, diagnostics, collector = (free_port() for _ in range(4))
    configs = [
        write_config(folder / f"{name}-{era}.json", {"echo": {"command": sys.executable, "args": [ECHO]}})
        for name in ("off", "on")
    ]
    telemetry = {
        "TOOLSCOUT_TRACES": "1",
        "TOOLSCOUT_LOG_FORMAT": "json",
        "TOOLSCOUT_LOG_QUERIES": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector}",
    }
    async with AsyncExitStack() as stack:
        stack.enter_context(listening([sys.executable, COLLECTOR, str(collector)], collector))
        urls = [stack.enter_context(listening(gateway_command(configs[0], "--http", str(off)), off))]
        with environment(**telemetry):
            command = gateway_command(configs[1], "--http", str(on), "--diagnostics", str(diagnostics))
            urls.append(stack.enter_context(listening(command, on)))
        clients = [await stack.enter_async_context(Client(url, mode=era)) for url in urls]
        ways = [await through_gateway(client) for client in clients]
        scraping = asyncio.create_task(read_every_second(diagnostics))
        times: list[list[float]] = [[], []]
        for number in range(WARM + CALLS):
            for which in (0, 1) if number % 2 else (1, 0):
                begun = time.perf_counter()
                await ways[which]()
                if number >= WARM:
                    times[which].append((time.perf_counter() - begun) * 1_000)
        scraping.cancel()
    without, everything = times
    p50 = statistics.median(without)
    added = statistics.median(one - other for one, other in zip(everything, without, strict=True))
    return {
        "off_p50_ms": round(p50, 3),
        "on_p50_ms": round(statistics.median(everything), 3),
        "added_ms": round(added, 3),
        "added_percent": round(100 * added / p50, 1),
        "mean_percent": round(100 * (statistics.fmean(everything) / statistics.fmean(without) - 1), 1),
    }


def timed(work: Callable[[], Any], count: int = READS) -> dict[str, float]:
    """Repeat something and return its median and its slowest twentieth in milliseconds."""
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        work()
        times.append((time.perf_counter() - begun) * 1_000)
    return {"p50_ms": round(statistics.median(times), 2), "p95_ms": round(statistics.quantiles(times, n=20)[-1], 2)}


def call_each(metrics: Metrics) -> None:
    """Count a call of each server and outcome."""
    for number in range(SERVERS):
        for outcome in OUTCOMES:
            metrics.record_call(f"server{number}", outcome, 120.0)


async def endpoint() -> dict[str, Any]:
    """Read `/metrics` over HTTP from a gateway with many servers, each called with every outcome."""
    servers = tuple(
        ServerConfig(title=f"server{number}", transport="stdio", command="true") for number in range(SERVERS)
    )
    async with Scout.open(store="memory:", settings=Settings(embedder="none")) as scout:
        scout.servers.configure(Config(servers=servers), {})  # not started: the states of the servers do not matter
        call_each(scout.metrics)
        readiness, port = Readiness(scout), free_port()
        page = LiveMetrics(Gateway(scout), readiness)
        found: dict[str, Any] = {}
        async with (
            serve_diagnostics(readiness, page.read, host="127.0.0.1", port=port),
            httpx2.AsyncClient() as reader,
        ):
            for name, change in (("nothing changed", False), ("every server was called", True)):
                times = []
                for _ in range(READS):
                    if change:
                        call_each(scout.metrics)
                    begun = time.perf_counter()
                    answer = await reader.get(f"http://127.0.0.1:{port}/metrics")
                    times.append((time.perf_counter() - begun) * 1_000)
                found[name] = {
                    "p50_ms": round(statistics.median(times), 2),
                    "p95_ms": round(statistics.quantiles(times, n=20)[-1], 2),
                }
        text = scout.metrics.render()
        begun = time.perf_counter()
        for _ in range(20_000):
            scout.metrics.record_call("server1", "ok", 120.0)
        recorded_us = (time.perf_counter() - begun) / 20_000 * 1e6
        assert answer.status_code == 200
    return {"reads": found, "lines": text.count(b"\n"), "bytes": len(text), "record_us": round(recorded_us, 1)}


def peer() -> dict[str, Any]:
    """Write the same series of the servers with prometheus-client, without HTTP."""
    registry = CollectorRegistry()
    count = PeerCounter("toolscout_calls", "Calls.", ["server", "outcome"], registry=registry)
    names = {"labelnames": ["server"], "registry": registry}
    seconds = PeerHistogram("toolscout_call_duration_seconds", "Duration.", buckets=_CALL_S, **names)
    up = PeerGauge("toolscout_server_up", "Up.", **names)
    breakers = PeerGauge("toolscout_breakers", "Breakers.", ["server", "state"], registry=registry)
    for number in range(SERVERS):
        server = f"server{number}"
        up.labels(server).set(1)
        for state in ("open", "half_open"):
            breakers.labels(server, state).set(0)
        for outcome in OUTCOMES:
            count.labels(server, outcome).inc()
            seconds.labels(server).observe(0.12)
    written = timed(lambda: generate_latest(registry), 15)
    begun = time.perf_counter()
    for _ in range(20_000):
        count.labels("server1", "ok").inc()
        seconds.labels("server1").observe(0.12)
    return {**written, "record_us": round((time.perf_counter() - begun) / 20_000 * 1e6, 1)}


async def measure() -> None:
    """Measure and save."""
    with tempfile.TemporaryDirectory() as folder:
        by_era = {name: await calls(Path(folder), era) for name, era in ERAS.items()}
    metrics, other = await endpoint(), peer()
    reads = [[f"`/metrics` over HTTP, {name}", *figures.values()] for name, figures in metrics["reads"].items()]
    where = machine()
    table = [
        "# Telemetry",
        "",
        "`python -m benchmarks.gateway.telemetry`, on " + ", ".join(f"{name} {value}" for name, value in where.items()),
        "",
        f"An echo through the gateway over HTTP, {CALLS:,} pairs of calls in turn. On: every span to a collector on "
        "the same machine, JSON log, requests logged, metrics read every second.",
        "",
        markdown(
            ["client", "off, p50 ms", "on, p50 ms", "added, ms", "added, %", "means, %"],
            [[name, *figures.values()] for name, figures in by_era.items()],
        ),
        "",
        f"{SERVERS:,} servers, {metrics['lines']:,} lines, {metrics['bytes'] / 1e6:.1f} MB. Recording a call takes "
        f"{metrics['record_us']} µs, with prometheus-client {other['record_us']} µs.",
        "",
        markdown(
            ["the text of the metrics", "p50 ms", "p95 ms"],
            [*reads, ["the series of the servers by prometheus-client, no HTTP", other["p50_ms"], other["p95_ms"]]],
        ),
    ]
    save("telemetry", {"machine": where, "calls": by_era, "metrics": metrics, "peer": other}, "\n".join(table))


if __name__ == "__main__":
    asyncio.run(measure())
