"""Nothing leaves the machine, and nothing is written outside toolscout's own folders, unless somebody asked for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
        [sys.executable, "-c", PROGRAM],
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
