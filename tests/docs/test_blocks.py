"""Every code block of the README and the docs runs, and prints the tools that it shows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from toolscout.policy.policy_file import parse_policy
from toolscout.sample import path as sample

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)
BLOCKS = [
    pytest.param(language, text, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, (language, text) in enumerate(BLOCK.findall(page.read_text("utf-8")), start=1)
]
SHOWN_ONLY = {"json", "text", "jsonl"}
INSTALLS = ("make ", "uv tool install ", "pip install ", "export ")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A user's home with the sample indexed and a tools.jsonl at hand."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "tools.jsonl").write_bytes(sample().read_bytes())
    (folder / "queries.jsonl").write_text('{"id": "1", "query": "send a mail", "gold": ["gmail__send_email"]}\n')
    run(folder, [sys.executable, "-m", "toolscout", "index", "--sample"])
    return folder


def run(folder, command, check=True):
    environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "COLUMNS": "120", "PYTHONUTF8": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=check, timeout=120
    )


@pytest.mark.parametrize(("language", "text"), BLOCKS)
def test_every_block_runs(language, text, home):
    if language == "python":
        run(home, [sys.executable, "-W", "error", "-c", text])
    elif language == "console":
        check_console(text, home)
    elif language == "toml":
        assert parse_policy(text).allow
    else:
        assert language in SHOWN_ONLY, f"a {language} block is neither run nor known to be shown only"


def check_console(text, home):
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        if command.startswith(INSTALLS):
            check_target(command)
            continue
        words = shlex.split(command)
        assert words[0] == "toolscout", f"a console block may run toolscout alone, not {words[0]}"
        result = run(home, [sys.executable, "-m", *words], check=False)
        assert result.returncode in (0, 1), result.stderr
        assert "Traceback" not in result.stderr
        for key in re.findall(r"[\w.-]+__[\w.-]+", shown):
            assert key in result.stdout + result.stderr, f"`{command}` no longer shows {key}:\n{result.stdout}"


def check_target(command):
    if command.startswith("make "):
        target = command.split()[1]
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.M), f"no make target {target}"
