"""Kill -9 at any moment of indexing into PostgreSQL: every reader then sees one whole edition."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import psycopg
import pytest

from editions import edition, editions_store, open_editions
from guarantees import guarantee
from knobs import kills
from toolscout import Scout
from toolscout.storage.postgres.store import PostgresStore
from writers import Writers

KILLS = kills(100)
STATEMENTS = 110
"""About as many statements as three publications send. A writer kills itself at one of them."""

_WHOLE = """
    SELECT s.tools, (SELECT count(*) FROM toolscout.tools t WHERE t.tenant = s.tenant AND t.owner = s.owner),
        (SELECT count(*) FROM toolscout.servers v WHERE v.tenant = s.tenant AND v.owner = s.owner)
    FROM toolscout.scopes s
"""


@pytest.fixture
def writers() -> Iterator[Writers]:
    processes = Writers()
    yield processes
    processes.close()


async def visible_edition(reader: Scout, store: PostgresStore, db: psycopg.Connection) -> int:
    """Check that reader and database hold one whole edition. Return its number, or -1 for an empty catalogue."""
    await store.catch_up()
    page = await reader.list_tools(page_size=100, detail="full")
    if not page:
        return -1
    numbers = {int(match.tool.description.split()[1]) for match in page}
    assert len(numbers) == 1, f"editions {sorted(numbers)} are mixed"
    number = numbers.pop()
    assert {match.tool.name for match in page} == {row["name"] for row in edition(number)}
    answer = await reader.search_tools(f"only in {number}", ranker="semantic", top_k=1)
    assert (answer[0].tool.name, answer.metadata.degraded) == (f"only_in_{number}", None)
    with db.transaction():
        for count, tools, servers in db.execute(_WHOLE).fetchall():
            assert (count, servers) == (tools, 2)
    return number


@guarantee("store:kill9")
async def test_a_writer_killed_at_any_moment_leaves_one_whole_edition(
    database: Callable[[], str], writers: Writers
) -> None:
    url, dice = database(), random.Random(22)
    visible = -1
    with psycopg.connect(url, autocommit=True) as db:
        store = editions_store(url)
        assert isinstance(store, PostgresStore)
        async with open_editions(url, store=store) as reader:
            for turn in range(KILLS):
                if turn % 2:
                    writers.start(url, visible + 1, kill_at=dice.randint(1, STATEMENTS))
                    published = writers.last_words()
                else:
                    writer, published = writers.start(url, visible + 1), []
                    if turn % 4:
                        published = [next(number for word, number in writers.said() if word == "published")]
                    published += writers.kill(writer, after_s=dice.uniform(0, 0.1))
                before, visible = visible, await visible_edition(reader, store, db)
                assert visible >= max(published, default=before), "an edition that was published is lost"
            assert await store.unembedded("hash-1") == []
    assert visible > 10
