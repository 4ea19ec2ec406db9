"""Nothing leaves the machine, and nothing is written outside toolscout's own folders, unless somebody asked for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guarantees import guarantee

pytestmark = [guarantee("private:offline"), pytest.mark.process]

PROGRAM = """
import asyncio, sys
from toolscout import Scout

lookups = []

def note_lookups(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.connect", "socket.sendto"):
        lookups.append((event, arguments))

sys.addaudithook(note_lookups)

async def main():
    rows = [{"name": "send_mail", "description": "Send a mail"}]
    async with Scout.open(tools=rows, store="sqlite:///own.db") as scout:
        answer = await scout.search_tools("email somebody")
        assert not answer.metadata.degraded

asyncio.run(main())
print(lookups)
print([line.split()[-1] for line in open("/proc/self/maps") if "onnxruntime" in line] != [])
"""


def test_a_search_with_the_builtin_model_writes_nothing_to_a_fresh_home_and_looks_up_no_host(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    process = subprocess.run(
        [*traced(tmp_path / "sockets"), sys.executable, "-c", PROGRAM],
        cwd=folder,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (process.stderr, process.stdout) == ("", "[]\nTrue\n")
    assert [str(path.relative_to(home)) for path in home.rglob("*")] == []
    assert {path.name.split("-")[0] for path in folder.iterdir()} == {"own.db"}
    if (tmp_path / "sockets").exists():
        assert "AF_INET" not in (tmp_path / "sockets").read_text(), "native code asks no host either"


def traced(report: Path) -> list[str]:
    """Return what makes a command report every socket that it opens, also from native code, where that is possible."""
    strace = shutil.which("strace")
    works = strace and subprocess.run([strace, "-f", "true"], capture_output=True, check=False).returncode == 0
    return [str(strace), "-f", "-qq", "-e", "trace=socket", "-e", "signal=none", "-o", str(report)] if works else []


CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
REQUESTS = (
    {"id": 1, "method": "initialize", "params": CLIENT},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "search_tools", "arguments": {"query": "refund a customer"}}},
)


def test_a_gateway_opens_no_connection_and_writes_only_to_toolscouts_own_folder(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(folder)}
    toolscout = [sys.executable, "-m", "toolscout"]
    subprocess.run([*toolscout, "index", "--sample"], cwd=folder, env=environment, timeout=120, check=True)
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [*toolscout, "serve"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        for request in REQUESTS:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
        process.stdin.flush()
        answers = map(json.loads, process.stdout)
        found: dict[str, Any] = next(answer for answer in answers if answer.get("id") == 2)
        hits = found["result"]["structuredContent"]["tools"]
        opened = [target for pid in family(process.pid) for target in opened_by(pid)]
        process.stdin.close()
        process.wait(60)
    assert hits[0]["key"] == "stripe__create_refund"
    assert [target for target in opened if target in ("tcp", "udp")] == []
    files = {path.relative_to(home).parts[:3] for path in home.rglob("*") if path.is_file()}
    assert files == {(".local", "share", "toolscout")}


def family(pid: int) -> Iterator[int]:
    """Yield a process and its children."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text("utf-8").split():
            yield from family(int(child))


def opened_by(pid: int) -> Iterator[str]:
    """Yield what a process has open: `tcp` or `udp` for a socket of the network, otherwise its target."""
    tables = {name: Path(f"/proc/{pid}/net/{name}").read_text("utf-8") for name in ("tcp", "tcp6", "udp", "udp6")}
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        target = str(descriptor.readlink())
        inode = target.removeprefix("socket:[").removesuffix("]") if target.startswith("socket:[") else ""
        networks = [name[:3] for name, table in tables.items() if inode and f" {inode} " in table]
        yield networks[0] if networks else target
