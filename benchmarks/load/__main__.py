"""`python -m benchmarks.load`: many clients search and call at once, in both eras, and nothing may fail.

The gateway holds the 14.7k catalogue (`python -m benchmarks.speed.catalogue` makes it) with an echo server behind it.
Beside it: the same echo server called directly, and through FastMCP's proxy. Everything is on loopback, and the clients
are a process of their own on the same machine.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.data import bench_folder, machine, markdown, rows, save
from benchmarks.gateway.peers import ECHO, UV, free_port, proxy_command, write_config
from benchmarks.load.server import ServerProcess, serving

CATALOGUE = Path("build/bench/speed.db")
CLIENTS = (1, 16, 200, 1_000)
SECONDS = 6.0
ECHO_TEXT = {"text": "hello"}
ECHO_CALL = {"name": "echo__echo", "arguments": ECHO_TEXT}


def searches() -> list[str]:
    """Return the requests of two sets."""
    sets = ("livemcp_step", "azure_mcp")
    return [row["query"] for name in sets for row in rows(bench_folder() / name / "queries.jsonl")]


@contextmanager
def gateway(folder: Path, *options: str) -> Iterator[ServerProcess]:
    """Serve the catalogue with the echo server behind it."""
    store, port = folder / "catalogue.db", free_port()
    if not store.exists():
        shutil.copy(CATALOGUE, store)
    config = write_config(folder / "load.json", {"echo": {"command": sys.executable, "args": [ECHO]}})
    command = [sys.executable, "-m", "toolscout", "serve", "--config", str(config), "--store", f"sqlite:///{store}"]
    with serving([*command, "--http", str(port), *options], port, log=folder / "gateway.log") as server:
        warm(server)
        yield server


def warm(server: ServerProcess) -> None:
    """Wait until the server behind the gateway is indexed, and searches are as fast as they will be."""
    for _ in range(60):
        ready = server.load(clients=1, seconds=0.3, era="modern", tool="call_tool", arguments=[ECHO_CALL])
        if ready["answered"] and not ready["failed"]:
            break
    else:
        raise RuntimeError(f"the echo server cannot be called: {ready}")
    server.load(clients=4, seconds=2, era="modern", tool="search_tools", arguments=[{"query": q} for q in searches()])


def measure_gateway(server: ServerProcess, clients: tuple[int, ...], seconds: float) -> list[dict[str, Any]]:
    """Load the gateway with each kind of request."""
    queries = searches()
    found = []
    for era in ("modern", "handshake"):
        for count in clients:
            new = [{"query": f"{query} {number}"} for number, query in enumerate(queries * 20)]
            kinds = {
                "search, each request new": ("search_tools", new),
                "search, requests repeated": ("search_tools", [{"query": query} for query in queries[:50]]),
                "echo": ("call_tool", [ECHO_CALL]),
            }
            for kind, (tool, arguments) in kinds.items():
                seen = server.load(clients=count, seconds=seconds, era=era, tool=tool, arguments=arguments)
                found.append({"server": "toolscout", "era": era, "kind": kind, **seen})
                print(found[-1], flush=True)
    return found


def measure_peers(folder: Path, clients: tuple[int, ...], seconds: float) -> list[dict[str, Any]]:
    """Load the echo server itself, and FastMCP's proxy in front of it."""
    port, found = free_port(), []
    commands = {"the echo server itself": [sys.executable, ECHO, str(port)]}
    if UV.exists():
        config = write_config(folder / "proxy.json", {"echo": {"command": sys.executable, "args": [ECHO]}})
        commands["fastmcp proxy"] = proxy_command(config, str(port))
    for name, command in commands.items():
        with serving(command, port, log=folder / "peer.log") as server:
            for era in ("modern", "handshake") if name != "fastmcp proxy" else ("handshake",):
                for count in clients:
                    seen = server.load(clients=count, seconds=seconds, era=era, tool="echo", arguments=[ECHO_TEXT])
                    found.append({"server": name, "era": era, "kind": "echo", **seen})
                    print(found[-1], flush=True)
    return found


def report(found: dict[str, Any]) -> str:
    """Write the table."""
    names = ("server", "era", "kind", "clients", "per_s", "p50_ms", "p99_ms", "cpu_ms", "refused", "failed")
    head = ["server", "era", "requests", "clients", "per s", "p50 ms", "p99 ms", "CPU ms each", "refused", "failed"]
    table = markdown(head, [[row[name] for name in names] for row in found["rows"]])
    return "\n\n".join(
        [
            "# Under load",
            "`python -m benchmarks.load`, on " + ", ".join(f"{k} {v}" for k, v in found["machine"].items()),
            "14.7k tools. Each client has one connection and sends one request after the other. Clients and"
            "\nservers share the machine. `CPU` is the time of the server for one answer. `refused` means 429.",
            table,
        ]
    )


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, nargs="*", default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--dry", action="store_true", help="print, and keep no result")
    given = parser.parse_args()
    if not CATALOGUE.exists():
        raise SystemExit("run `python -m benchmarks.speed.catalogue` first: it makes the catalogue")
    found: dict[str, Any] = {"machine": machine(), "rows": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with gateway(folder) as server:
            found["rows"] += measure_gateway(server, tuple(given.clients), given.seconds)
        if not given.no_peers:
            found["rows"] += measure_peers(folder, tuple(given.clients), given.seconds)
    if not given.dry:
        save("load", found, report(found))


if __name__ == "__main__":
    main()
