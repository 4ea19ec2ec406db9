"""The time from process start to the answer to `tools/list`, with some slow and some dead servers."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.gateway.peers import ECHO, gateway_command, write_config

LIVE, RUNS = 17, 5
DEAD = {
    "missing": {"command": "no-such-command-anywhere"},
    "exits": {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]},
    "mute": {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Wire:
    """A gateway and its pipes."""

    def __init__(self, command: list[str]) -> None:
        """Start it."""
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        assert self.process.stdin and self.process.stdout
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        result: dict[str, Any] = json.loads(self.process.stdout.readline())["result"]
        return result

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(20)


def time_to_first_list(folder: Path) -> dict[str, Any]:
    """Start the gateway several times over the same stored catalogue."""
    servers = {f"echo{number}": {"command": sys.executable, "args": [ECHO]} for number in range(LIVE)}
    config = write_config(folder / "ready.json", {**servers, **DEAD})
    firsts, indexed = [], []
    for _ in range(RUNS + 1):
        begun = time.perf_counter()
        wire = Wire(gateway_command(config))
        wire.ask("tools/list", {})
        firsts.append(time.perf_counter() - begun)
        search = {"name": "search_tools", "arguments": {"query": "echo a text", "limit": 50, "detail": "minimal"}}
        while len(wire.ask("tools/call", search)["structuredContent"]["tools"]) < LIVE:
            time.sleep(0.05)
        indexed.append(time.perf_counter() - begun)
        wire.close()
    # The first run begins with an empty catalogue, and with files that nobody has read yet.
    return {
        "servers": LIVE + len(DEAD),
        "dead": len(DEAD),
        "runs": RUNS,
        "median_s": round(statistics.median(firsts[1:]), 2),
        "slowest_s": round(max(firsts[1:]), 2),
        "empty_catalogue_s": round(firsts[0], 2),
        "indexed_s": round(indexed[0], 2),
    }
