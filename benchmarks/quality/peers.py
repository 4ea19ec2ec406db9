"""Other projects, each installed in its own environment under build/peers and run with default settings."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path("build/peers")
PEERS = {"fastmcp": "fastmcp", "graph-tool-call": "graph-tool-call"}
"""A peer's name, and the package that it is installed from."""
PATIENCE_S = 600
SLOW = {"graph-tool-call": 30}
"""Peers that take seconds for one request among thousands of tools, and how many requests a set they are given."""


class PeerMissingError(Exception):
    """A peer that could not be installed or run; the report says why."""


def python_of(name: str) -> Path:
    """Return the interpreter of a peer's environment, made when it is not there yet."""
    python = ROOT / name / "bin" / "python"
    if python.exists():
        return python
    uv = next((path for path in (".tools/bin/uv", shutil.which("uv")) if path and Path(path).exists()), None)
    if uv is None:
        raise PeerMissingError("uv is needed to install it")
    for command in (
        [uv, "venv", "--quiet", str(ROOT / name)],
        [uv, "pip", "install", "--quiet", "--python", str(python), PEERS[name]],
    ):
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if ran.returncode:
            shutil.rmtree(ROOT / name, ignore_errors=True)
            raise PeerMissingError(f"{PEERS[name]} cannot be installed: {ran.stderr.strip()[-200:]}")
    return python


def answers(name: str, tools: Sequence[dict[str, Any]], requests: Sequence[str]) -> dict[str, Any]:
    """Rank every request in the peer's own process: {"version", "found", "took_ms"}."""
    script = Path(__file__).parent / f"peer_{name.replace('-', '_')}.py"
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.writelines(json.dumps(tool) + "\n" for tool in tools)
        file.flush()
        command = [str(python_of(name)), str(script), file.name]
        given = json.dumps(list(requests))
        try:
            ran = subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise PeerMissingError(f"no answer within {PATIENCE_S} s for {len(tools):,} tools") from error
    if ran.returncode:
        raise PeerMissingError(ran.stderr.strip()[-200:])
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found
