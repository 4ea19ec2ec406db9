"""The server process under load: how much processor time and memory it has used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.gateway.peers import START_S, listens

CLIENTS = str(Path(__file__).parent / "clients.py")
_TICKS = os.sysconf("SC_CLK_TCK")


class ServerProcess:
    """A running server with the processes that it started."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.port = port

    def cpu_s(self) -> float:
        """Return the processor time of the server itself and of its workers, without the MCP servers behind it."""
        return sum(_cpu_s(pid) for pid in self._pids())

    def memory_mb(self) -> float:
        """Return the proportional share of memory of the same processes."""
        return round(sum(_pss_kb(pid) for pid in self._pids()) / 1_024, 1)

    def load(self, **plan: Any) -> dict[str, Any]:
        """Let clients load the server, and add what it used for each answer."""
        before = self.cpu_s()
        done = subprocess.run(
            [sys.executable, CLIENTS],
            input=json.dumps({"port": self.port, **plan}),
            capture_output=True,
            text=True,
            check=True,
        )
        seen: dict[str, Any] = json.loads(done.stdout)
        used = self.cpu_s() - before
        return {**seen, "cpu_ms": round(used * 1_000 / max(seen["answered"], 1), 2), "memory_mb": self.memory_mb()}

    def _pids(self) -> list[int]:
        return [self._process.pid, *(pid for pid in _children(self._process.pid) if _is_worker(pid))]


@contextmanager
def serving(command: list[str], port: int, *, log: Path) -> Iterator[ServerProcess]:
    """Run a server until the end of the block."""
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stream)
    try:
        ends = time.monotonic() + START_S
        while not listens(port):
            if process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError(f"{command} does not listen: {log.read_text()[-2_000:]}")
            time.sleep(0.05)
        yield ServerProcess(process, port)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _children(pid: int) -> list[int]:
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _is_worker(pid: int) -> bool:
    try:
        return b"toolscout" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _pss_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
