"""Every code block of the README and the docs runs, and prints exactly what the page shows.

- A `python` block runs. If it prints, a `text` block directly after it shows the output.
- A `console` block holds `$ command` lines, each followed by its output where the page shows it.
- A `toml` block is a policy. `json`, `jsonl`, `mermaid` and other `text` blocks are only shown.

The blocks of a page run in order, in one folder, as a reader would type them. Those of the README run as processes in
a fresh home, the others in this process. Durations may differ from what is shown.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolscout import Scout
from toolscout.policy.policy_file import parse_policy
from toolscout.sample import path as sample_path

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
COLUMNS = "90"
SHOWN_ONLY = {"json", "jsonl", "mermaid", "text"}
INSTALLS = ("uv tool install ", "pip install ", "export ")

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```\n", re.S | re.M)
_OUTPUT = re.compile(r"\A\n*```text\n(.*?)^```\n", re.S | re.M)
_DURATION = re.compile(r"[\d.,]+ (ms|s)\b")
_SCORE = re.compile(r"(?<![\d.])[01]\.\d\d(?!\d)")
_SAVED = re.compile(r"[\d,]+ tokens instead of ([\d,]+)")

Run = Callable[..., str]
"""Runs `python CODE` or `toolscout ARGUMENT...` and returns what was printed, standard error last."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `output` is the text block directly after it."""

    where: str
    language: str
    text: str
    output: str | None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for fence in _FENCE.finditer(text):
        output = _OUTPUT.match(text[fence.end() :])
        line = text[: fence.start()].count("\n") + 1
        yield Block(f"{page.name}:{line}", fence[1], fence[2], output[1] if output else None)


@pytest.fixture
def folder(sample_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a tools.jsonl; the sample is indexed in the user's catalogue."""
    (tmp_path / "tools.jsonl").write_bytes(sample_path().read_bytes())
    (tmp_path / "queries.jsonl").write_text('{"id": "1", "query": "send a mail", "gold": ["gmail__send_email"]}\n')
    catalogue = tmp_path / "data" / "toolscout" / "catalogue.db"
    catalogue.parent.mkdir(parents=True)
    catalogue.write_bytes(Path(sample_store.removeprefix("sqlite:///")).read_bytes())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", COLUMNS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_runs_and_prints_what_is_shown(
    page: Path, folder: Path, toolscout: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def run(program: str, *arguments: str) -> str:
        if program == "toolscout":
            ran = toolscout(*arguments)
            assert ran.code in (0, 1), ran.err
            return str(ran.out + ran.err)
        module = ModuleType("block")
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch, restored_logging():
            patch.setitem(sys.modules, "block", module)
            exec(compile(arguments[0], "block", "exec"), vars(module))
        printed = capsys.readouterr()
        return printed.out + printed.err

    for block in blocks(page):
        check(block, run)


@pytest.mark.process
def test_the_commands_of_the_readme_run_in_order_in_a_fresh_home_and_print_what_is_shown(tmp_path: Path) -> None:
    """The first hour: nothing is prepared, no variable is set, and each Python block is a file."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "COLUMNS": COLUMNS, "PYTHONUTF8": "1"}

    def run(program: str, *arguments: str) -> str:
        command = ["-m", "toolscout", *arguments]
        if program == "python":
            (folder / "program.py").write_text(arguments[0], "utf-8")
            command = ["-W", "error", "program.py"]
        ran = subprocess.run(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=120,
            cwd=folder,
            env=environment,
            encoding="utf-8",
        )
        nothing = program == "toolscout" and "No agent host on this machine" in ran.stdout
        assert ran.returncode == (1 if nothing else 0), f"{arguments}: {ran.stdout}"
        return ran.stdout

    for block in blocks(README):
        check(block, run)
    seen = run("toolscout", "list", "--as", "ann", "--group", "engineering", "--json")
    assert json.loads(seen)["metadata"]["total"] == 128, "the user of the README's key sees the tools"
    local = {path.relative_to(home).parts[:2] for path in home.rglob("*") if path.is_file()}
    assert local <= {(".local", "share"), (".config", "toolscout")}


def check(block: Block, run: Run) -> None:
    """Run a block and compare what it prints."""
    if block.language == "python":
        printed = run("python", block.text)
        if block.output is not None or "print(" in block.text:
            same(printed, block.output or "", block.where)
    elif block.language == "console":
        check_console(block, run)
    elif block.language == "toml":
        assert parse_policy(block.text).allow, block.where
    else:
        assert block.language in SHOWN_ONLY, f"{block.where}: a {block.language} block is neither run nor known"


def check_console(block: Block, run: Run) -> None:
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        if command.startswith(INSTALLS):
            continue
        if command.startswith("make "):
            check_make(command.split()[1], expected, block.where, run)
            continue
        program, *arguments = shlex.split(command)
        assert program == "toolscout", f"{block.where}: a console block may run toolscout alone, not {program}"
        printed = run(program, *arguments)
        assert "Traceback" not in printed, f"{block.where}: {command}\n{printed}"
        if expected:
            same(printed, expected, f"{block.where}: {command}")


def check_make(target: str, shown: str, where: str, run: Run) -> None:
    """Check that the target exists; where output is shown, run the toolscout commands of its recipe."""
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert recipe, f"{where}: no make target {target}"
    if shown:
        printed = ""
        for line in recipe[1].replace("$(DEMO)", "sqlite:///demo.db").splitlines():
            program, *arguments = shlex.split(line.strip().removeprefix("@").replace("$(BIN)", ".venv/bin"))
            printed += " ".join(arguments) + "\n" if program == "echo" else run("toolscout", *arguments)
        same(printed, shown, f"{where}: make {target}")


def same(printed: str, shown: str, where: str) -> None:
    """Compare everything but durations; scores may differ a little from one processor to the next."""
    assert masked(printed) == masked(shown), f"{where} prints something else than the page shows:\n{printed}"
    scores = [[float(score) for score in _SCORE.findall(text)] for text in (printed, shown)]
    assert scores[0] == pytest.approx(scores[1], abs=0.02), (
        f"{where} prints other scores than the page shows:\n{printed}"
    )


def masked(text: str) -> list[str]:
    """Hide durations, scores and the spaces at the end of a line."""
    masked = _SCORE.sub("#.##", _DURATION.sub(r"# \1", text))
    return [line.rstrip() for line in masked.strip("\n").splitlines()]


@contextmanager
def restored_logging() -> Iterator[None]:
    """Undo what a block does to the logging of events."""
    logger = logging.getLogger("toolscout.events")
    level = logger.level
    yield
    logger.setLevel(level)


async def test_every_sum_of_tokens_that_is_shown_is_that_of_the_sample(sample_scout: Scout) -> None:
    metadata = (await sample_scout.search_tools("book a meeting room")).metadata
    total = metadata.tokens + metadata.tokens_saved
    expected = [text for page in (README, *PAGES) for text in _SAVED.findall(page.read_text("utf-8"))]
    assert len(expected) >= 2
    assert {int(text.replace(",", "")) for text in expected} == {total}
