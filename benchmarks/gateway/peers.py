"""The processes that are measured: the echo server alone, behind the gateway, and behind FastMCP's proxy."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters

ROOT = Path(__file__).parent.parent.parent
ECHO = str(Path(__file__).parent / "echo_server.py")
PROXY = str(Path(__file__).parent / "peer_proxy.py")
UV = ROOT / ".tools" / "bin" / "uv"
START_S = 60.0


def write_config(path: Path, servers: dict[str, dict[str, Any]]) -> Path:
    """Write a config file."""
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


def gateway_command(config: Path, *options: str) -> list[str]:
    """Return the command of the gateway, with a catalogue beside its config."""
    store = f"sqlite:///{config.with_suffix('.db')}"
    return [sys.executable, "-m", "toolscout", "serve", "--config", str(config), "--store", store, *options]


def proxy_command(config: Path, *options: str) -> list[str]:
    """Return the command of FastMCP's proxy, in an environment of its own."""
    return [str(UV), "run", "--quiet", "--no-project", "--with", "fastmcp", "python", PROXY, str(config), *options]


def started(command: list[str]) -> StdioServerParameters:
    """Return what the SDK's client starts."""
    return StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def listens(port: int) -> bool:
    """Tell whether somebody listens on a port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


@contextmanager
def listening(command: list[str], port: int) -> Iterator[str]:
    """Run a server until the end of the block; give its address when it listens."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        ends = time.monotonic() + START_S
        while time.monotonic() < ends and process.poll() is None:
            if listens(port):
                yield f"http://127.0.0.1:{port}/mcp"
                return
            time.sleep(0.05)
        raise RuntimeError(f"{command} does not listen")
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
