"""Every code block of the docs runs, and prints exactly what the page shows.

The blocks of a page run in order, in one folder, as a reader would type them, in this process. Those of the README run
in `tests/journeys/test_first_hour.py`.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pages import COLUMNS, PAGES, README, blocks, check
from toolscout import Scout
from toolscout.sample import path as sample_path

pytestmark = pytest.mark.docs

_SAVED = re.compile(r"[\d,]+ tokens instead of ([\d,]+)")


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
        assert program != "make"
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
