"""Kill -9 at any moment of indexing: what a reader then finds is wholly one edition, and the file is sound."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalogues import unembedded
from editions import edition, open_editions
from guarantees import guarantee
from knobs import kills
from writers import Writers

pytestmark = pytest.mark.process

KILLS = kills(100)

STATEMENTS = 220
"""About what two publications send to SQLite: a writer that counts kills itself anywhere within them."""


@pytest.fixture
def writers() -> Iterator[Writers]:
    processes = Writers()
    yield processes
    processes.close()


async def visible_edition(path: Path) -> int:
    """Check that the file is sound and holds one whole edition. Return its number, or -1 for an empty catalogue."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    async with open_editions(str(path)) as scout:
        page = await scout.list_tools(page_size=100, detail="full")
        if not page:
            return -1
        numbers = {int(match.tool.description.split()[1]) for match in page}
        assert len(numbers) == 1, f"editions {sorted(numbers)} are mixed"
        number = numbers.pop()
        assert {match.tool.name for match in page} == {row["name"] for row in edition(number)}
        assert await unembedded(f"sqlite:///{path}", "hash-1") == []
        answer = await scout.search_tools(f"only in {number}", ranker="semantic", top_k=1)
        assert answer[0].tool.name == f"only_in_{number}"
        assert answer.metadata.degraded is None
        return number


@guarantee("store:kill9")
async def test_a_writer_killed_at_any_moment_leaves_one_whole_edition(tmp_path: Path, writers: Writers) -> None:
    path, dice = tmp_path / "catalogue.db", random.Random(20)
    visible = await visible_edition(path)
    for turn in range(KILLS):
        if turn % 2:
            writers.start(path, visible + 1, kill_at=dice.randint(1, STATEMENTS))
            published = writers.last_words()
        else:
            published = writers.kill(writers.start(path, visible + 1), after_s=dice.uniform(0, 0.15))
        before, visible = visible, await visible_edition(path)
        assert visible >= max(published, default=before), "an edition that was published is lost"
    assert visible > 0


@guarantee("store:kill9", "store:upgrade")
async def test_a_writer_killed_while_it_creates_the_file_leaves_a_usable_one(tmp_path: Path, writers: Writers) -> None:
    dice = random.Random(21)
    for turn in range(10):
        path = tmp_path / f"catalogue-{turn}.db"
        published = writers.kill(writers.start(path, 0), after_s=dice.uniform(0, 0.03))
        assert await visible_edition(path) >= max(published, default=-1)
