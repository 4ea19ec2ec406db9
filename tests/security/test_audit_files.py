"""The files of the audit log are rotated by several processes at once, and no line is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from guarantees import guarantee
from toolscout.errors import InputFileError
from toolscout.telemetry import AuditLog, read_audit

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
