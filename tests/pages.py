"""The code blocks of the README and the docs: reading them, running them, and comparing what they print.

- A `python` block runs. If it prints, a `text` block directly after it shows the output.
- A `console` block holds `$ command` lines, each followed by its output where the page shows it.
- A `toml` block is a policy. `json`, `jsonl`, `mermaid` and other `text` blocks are only shown.

Durations may differ from what is shown, and scores a little.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from toolscout.policy.policy_file import parse_policy

ROOT = Path(__file__).parent.parent
MAKEFILE = ROOT / "Makefile"
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
COLUMNS = "90"
SHOWN_ONLY = {"json", "jsonl", "mermaid", "text"}
INSTALLS = ("uv tool install ", "pip install ", "export ")

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```\n", re.S | re.M)
_OUTPUT = re.compile(r"\A\n*```text\n(.*?)^```\n", re.S | re.M)
_DURATION = re.compile(r"[\d.,]+ (ms|s)\b")
_SCORE = re.compile(r"(?<![\d.])[01]\.\d\d(?!\d)")

Run = Callable[..., str]
"""Runs `python CODE`, `toolscout ARGUMENT...` or `make TARGET`, and returns what was printed, standard error last."""


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
        program, *arguments = shlex.split(command)
        assert program in ("toolscout", "make"), f"{block.where}: a console block may not run {program}"
        if program == "make":
            assert re.search(rf"^{arguments[0]}:", MAKEFILE.read_text("utf-8"), re.M), f"{block.where}: no such target"
            if not expected:
                continue  # such as `make test`, which runs this
        printed = run(program, *arguments)
        assert "Traceback" not in printed, f"{block.where}: {command}\n{printed}"
        if expected:
            same(printed, expected, f"{block.where}: {command}")


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
