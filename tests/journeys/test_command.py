"""The real command in a process of its own: the first five minutes, what goes to which stream, and a closed pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

COMMAND = [sys.executable, "-m", "toolscout"]


def _run(*arguments: str, data: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_DATA_HOME": str(data), **options.pop("env", {})}
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, env=environment, check=False, **options
    )


def test_the_first_five_minutes_need_no_configuration(tmp_path: Path) -> None:
    indexed = _run("index", "--sample", data=tmp_path)
    assert indexed.returncode == 0
    assert "128 tools: 128 new" in indexed.stdout
    assert indexed.stderr == ""
    assert (tmp_path / "toolscout" / "catalogue.db").exists()
    search = _run("search", "email", "the", "team", "--json", data=tmp_path)
    assert search.returncode == 0
    assert search.stderr == ""
    assert "gmail__send_email" in [tool["key"] for tool in json.loads(search.stdout)["tools"]][:3]
    described = _run("describe", "gmail__send_email", data=tmp_path)
    assert "Send a mail at once." in described.stdout
    wrong = _run("describe", "gmail__send_emial", data=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "did you mean: gmail__send_email" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_texts_of_any_script_are_printed_intact_in_any_locale(toolscout: Callable[..., Any], tmp_path: Path) -> None:
    file, store = tmp_path / "tools.jsonl", f"sqlite:///{tmp_path / 'catalogue.db'}"
    text = "向团队发送消息 שלח הודעה 📨"
    file.write_text(json.dumps({"name": "send", "description": text}), encoding="utf-8")
    toolscout("index", "--tools", str(file), "--store", store)
    env = {"LC_ALL": "C", "PYTHONIOENCODING": "", "PYTHONUTF8": "0"}
    as_json = _run("describe", "local__send", "--store", store, "--json", data=tmp_path, env=env)
    assert (as_json.returncode, as_json.stderr) == (0, "")
    assert json.loads(as_json.stdout)["tools"][0]["description"] == text
    as_text = _run("describe", "local__send", "--store", store, data=tmp_path, env=env)
    assert (as_text.returncode, as_text.stderr) == (0, "")
    assert "local__send" in as_text.stdout


def test_a_closed_pipe_causes_no_traceback(sample_store: str) -> None:
    arguments = ["list", "--detail", "full", "--page-size", "100", "--json", "--store", sample_store]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(timeout=60)
    assert "Traceback" not in errors
    assert "BrokenPipeError" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_goes_to_the_terminal_and_never_to_stdout(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    chunks: list[bytes] = []

    def read() -> None:
        try:
            while chunk := os.read(ours, 4_096):
                chunks.append(chunk)
        except OSError:  # the other end is closed: the command has ended
            return

    reader = threading.Thread(target=read)
    reader.start()
    process = subprocess.run(
        [*COMMAND, "index", "--sample", "--store", "memory:"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    reader.join(timeout=30)
    os.close(ours)
    terminal = b"".join(chunks).decode("utf-8", "replace")
    assert "embedding" in terminal
    assert "embedding" not in process.stdout
    assert "\x1b" not in process.stdout
    assert "128 new" in process.stdout
