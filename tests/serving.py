"""`toolscout serve` as a process of its own, as a host starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters

from servers import free_port
from toolscout.config import ServerConfig

WAIT_S = 30.0


def write_config(folder: Path, *servers: ServerConfig, **own: Any) -> Path:
    """Write an mcp.json that lists these servers."""
    entries = {}
    for server in servers:
        if server.transport == "stdio":
            entry: dict[str, Any] = {"command": server.command, "args": list(server.args), "env": dict(server.env)}
        else:
            entry = {"type": server.transport, "url": server.url, "toolscout": {"private": server.private}}
        entries[server.title] = entry
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": entries, **({"toolscout": own} if own else {})}), "utf-8")
    return path


def serve_command(folder: Path, *options: str) -> list[str]:
    """Return the command that serves the config of a folder, with a catalogue of its own."""
    store = f"sqlite:///{folder / 'catalogue.db'}"
    config = ["--config", str(folder / "mcp.json")] if (folder / "mcp.json").exists() else []
    return [sys.executable, "-m", "toolscout", "serve", *config, "--store", store, *options]


def stdio_parameters(folder: Path, *options: str) -> StdioServerParameters:
    """Return what the SDK's client starts."""
    command = serve_command(folder, *options)
    return StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))


@dataclass
class Serving:
    """A gateway that listens on HTTP."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        """Return where MCP is served."""
        return f"http://127.0.0.1:{self.port}/mcp"


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Serving]:
    """Serve HTTP until the end of the block, which begins when the gateway is healthy."""
    port, log = free_port(), folder / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            serve_command(folder, "--http", str(port), *options), stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
    try:
        _until_healthy(process, port, log)
        yield Serving(process, port, log)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_healthy(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    ends = time.monotonic() + WAIT_S
    while time.monotonic() < ends and process.poll() is None:
        with (
            suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer,
        ):
            assert json.load(answer)["status"] == "ok"
            return
        time.sleep(0.02)
    raise RuntimeError(f"the gateway does not answer:\n{log.read_text()[-4000:]}")
