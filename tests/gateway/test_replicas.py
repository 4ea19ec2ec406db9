"""Three gateways over one PostgreSQL, under load, all serve the same catalogue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from mcp import Client

from downstreams import fake, until
from fleet import MODERN, WAIT_S, Fleet, Replica, ask
from guarantees import guarantee
from postgres_server import PostgresServer, with_database
from serving import write_config
from toolscout import Scout, Settings

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Return a database server for this module alone, because it is stopped under load."""
    made = PostgresServer()
    made.start()
    yield made
    made.remove()


@pytest.fixture(scope="module")
async def fleet(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    """Return three replicas over one new database, which they all start and migrate at the same time."""
    folder = tmp_path_factory.mktemp("fleet")
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE fleet")
    write_config(folder, fake(folder, "fake", "--names", "echo,change").config)
    made = Fleet(folder, with_database(server.url, "fleet"), 3)
    try:
        await made.start()
        await asyncio.gather(*(_found(replica.url, "echo") for replica in made.replicas))
        yield made
    finally:
        made.end()


async def _found(url: str, name: str, *, there: bool = True) -> float:
    """Search one replica until it finds a tool, or no longer finds it, and return the time."""
    async with asyncio.timeout(WAIT_S), Client(url, mode=MODERN) as client:
        while True:
            got = await client.call_tool("search_tools", {"query": name, "limit": 10})
            if any(hit["name"] == name for hit in (got.structured_content or {}).get("tools", ())) is there:
                return time.monotonic()
            await asyncio.sleep(0.01)


@guarantee("replica:serving")
@pytest.mark.parametrize("enabled", [False, True])
async def test_what_one_process_publishes_is_seen_on_every_replica_within_1_s(fleet: Fleet, enabled: bool) -> None:
    async with Scout.open(store=fleet.replicas[0].store, settings=Settings(embedder="none")) as scout:
        waiting = [asyncio.create_task(_found(item.url, "change", there=enabled)) for item in fleet.replicas]
        await scout.set_enabled("fake__change", enabled)
        published = time.monotonic()
        assert max([await task for task in waiting]) - published < 1.0


@guarantee("replica:serving")
async def test_a_tool_that_one_process_lists_is_found_on_every_replica_within_1_s(fleet: Fleet) -> None:
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "change", "newcomer")]
    async with Scout.open(store=fleet.replicas[0].store, settings=Settings(embedder="none")) as scout:
        waiting = [asyncio.create_task(_found(item.url, "newcomer")) for item in fleet.replicas]
        await scout.index_server_tools("fake", listed)
        published = time.monotonic()
        assert max([await task for task in waiting]) - published < 1.0
    for replica in fleet.replicas:
        assert "cannot be reached" not in replica.log(), "an empty database that three migrate at once is no failure"


@guarantee("store:down", "replica:serving")
async def test_while_the_database_is_down_answers_are_stale_and_replicas_live_but_unready(
    fleet: Fleet, server: PostgresServer
) -> None:
    async with fleet.under_load() as load:
        await load.grows(20)
        await asyncio.to_thread(server.stop)
        try:
            await asyncio.gather(*(replica.until(ready=False) for replica in fleet.replicas))
            for replica in fleet.replicas:
                assert ask(replica.diagnostics, "/livez")[0] == 200
                assert ask(replica.diagnostics, "/readyz")[1]["reasons"] == ["the store does not answer"]
            stale = load.stale
            await load.grows(40)
            assert load.stale > stale
            await asyncio.gather(*(_said(replica, "the store cannot be reached") for replica in fleet.replicas))
        finally:
            await asyncio.to_thread(server.start)
        took = await asyncio.gather(*(replica.until(ready=True) for replica in fleet.replicas))
        assert max(took) < 5.0
        assert await _until_fresh(fleet) < 5.0
        await load.grows(20)
        await asyncio.gather(*(_said(replica, "the store is back") for replica in fleet.replicas))
    assert load.failures == []
    for replica in fleet.replicas:
        assert replica.log().count("cannot be reached") <= 3, "it is told once, not at every look"


async def _said(replica: Replica, words: str) -> None:
    """Wait until a replica has logged something."""
    await until(lambda: words in replica.log())


async def _until_fresh(fleet: Fleet) -> float:
    """Return how long it takes until no replica marks its answers as stale."""
    began = time.monotonic()
    for replica in fleet.replicas:
        async with asyncio.timeout(WAIT_S), Client(replica.url, mode=MODERN) as client:
            while True:
                got = await client.call_tool("search_tools", {"query": "echo"})
                if not (got.structured_content or {})["metadata"]["stale"]:
                    break
                await asyncio.sleep(0.02)
    return time.monotonic() - began


@guarantee("replica:serving")
async def test_one_replica_killed_and_one_restarted_cost_only_what_was_in_flight(fleet: Fleet) -> None:
    killed, restarted, _ = fleet.replicas
    async with fleet.under_load() as load:
        await load.grows(30)
        killed.kill()
        await load.grows(30)
        assert await restarted.stop() == 0
        await load.grows(20)
        restarted.start()
        await restarted.until(ready=True)
        before = load.answers[restarted.number]
        async with asyncio.timeout(WAIT_S):
            while load.answers[restarted.number] < before + 10:
                await load.grows(5)
    assert load.failures == []
    assert load.in_flight <= 4
    for replica in fleet.replicas:
        assert "Traceback" not in replica.log()
