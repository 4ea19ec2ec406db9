"""The files of the audit log are rotated by several processes at once, and no line is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from guarantees import guarantee
from toolscout import AuditError, Scout, Settings
from toolscout.errors import InputFileError
from toolscout.telemetry import AuditLog, read_audit
from toolscout.testing import FakeServer

WRITER = """
import sys
from pathlib import Path
from toolscout.telemetry import AuditLog
log = AuditLog(Path(sys.argv[1]), max_bytes=20_000)
sys.stdin.readline()
for number in range(600):
    log.write("call", tool=f"{sys.argv[2]}__{number}", arguments="x" * 20)
"""


@pytest.mark.process
@guarantee("audit:every-call")
def test_two_processes_that_rotate_the_same_file_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdin=subprocess.PIPE) for name in "ab"
    ]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    for writer in writers:
        assert writer.stdin
        writer.stdin.close()
    tools = [line["tool"] for line in read_audit(path)]
    assert len(list(tmp_path.glob("audit.jsonl.[0-9]*"))) > 3
    assert sorted(tools) == sorted(f"{name}__{number}" for name in "ab" for number in range(600))
    assert max(item.stat().st_size for item in tmp_path.iterdir()) <= 20_000 + 200


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from toolscout import AuditError, Caller, Scout, Settings
from toolscout.testing import FakeServer

async def main():
    path = Path(sys.argv[1])
    settings = Settings(store="memory:", embedder="none", audit=str(path), audit_required=len(sys.argv) > 2)
    server = FakeServer("demo", [{"name": "echo"}])
    async with Scout.open(settings=settings, servers=[server]) as scout:
        async def call(number):
            try:
                await scout.call_tool("demo__echo", {}, caller=Caller(user=f"user {number}"))
                print("sent", number)
            except AuditError:
                print("refused", number)
        await call(0)
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, unlimited[1]))
        await call(1)
        await call(2)
        print(path.read_bytes().endswith(b"\\n"))
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        await call(3)
        print(len(server.calls))

asyncio.run(main())
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are a thing of Unix")
@guarantee("audit:every-call")
@pytest.mark.parametrize(
    ("required", "output"),
    [
        ([], ["sent 0", "sent 1", "sent 2", "True", "sent 3", "4"]),
        (["1"], ["sent 0", "sent 1", "refused 2", "True", "sent 3", "3"]),
    ],
)
def test_a_full_disk_tears_no_line_and_loses_none(tmp_path: Path, required: list[str], output: list[str]) -> None:
    path = tmp_path / "audit.jsonl"
    command = [sys.executable, "-c", FULL_DISK, str(path), *required]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.splitlines() == output, ran.stderr
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    calls = [(line["user"], line["outcome"]) for line in lines if line["act"] == "call"]
    second = "audit_unavailable" if required else "ok"
    assert calls == [("user 0", "ok"), ("user 1", "ok"), ("user 2", second), ("user 3", "ok")]


@guarantee("audit:every-call")
def test_lines_that_are_lost_are_counted_and_the_log_says_so(tmp_path: Path, caplog) -> None:
    path = tmp_path / "logs" / "audit.jsonl"
    path.parent.write_text("not a folder")
    log = AuditLog(path)
    for number in range(10_003):
        log.write("call", tool=str(number))
    assert caplog.messages[-1].endswith("; 3 lines are lost")
    path.parent.unlink()
    log.write("call", tool="last")
    lines = list(read_audit(path))
    assert (lines[0]["act"], lines[0]["lines"]) == ("audit.lost", 4)
    assert [line["tool"] for line in lines[1:]] == [*map(str, range(4, 10_003)), "last"]


@guarantee("audit:every-call")
def test_a_line_after_a_torn_one_stands_on_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"act":"call","to')
    AuditLog(path).write("call", tool="a__b")
    assert [line["tool"] for line in read_audit(path)] == ["a__b"]


@guarantee("audit:every-call")
async def test_no_call_is_sent_while_a_required_log_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.jsonl"
    server = FakeServer("demo", [{"name": "echo"}])
    settings = Settings(store="memory:", embedder="none", audit=str(path), audit_required=True)
    async with Scout.open(settings=settings, servers=[server]) as scout:
        await scout.call_tool("demo__echo", {})
        path.rename(tmp_path / "moved")
        path.mkdir()
        with pytest.raises(AuditError):
            await scout.call_tool("demo__echo", {})
        assert len(server.calls) == 1
        path.rmdir()
        await scout.call_tool("demo__echo", {})
    assert len(server.calls) == 2


@guarantee("audit:every-call")
def test_ten_files_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path, max_bytes=200)
    for number in range(60):
        log.write("call", tool=f"a__{number}", outcome="x" * 80)
    assert len(list(tmp_path.glob("audit.jsonl.[0-9]*"))) == 10
    assert next(iter(read_audit(path)))["tool"] != "a__0"
    with pytest.raises(InputFileError):
        next(read_audit(tmp_path / "none"))
