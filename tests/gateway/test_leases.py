"""Several processes share one catalogue: one at a time indexes a server, and another takes over if it dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from downstreams import QUICK, WAIT_S, fake, until
from embedders import GatedEmbedder, HashEmbedder
from guarantees import guarantee
from toolscout import Scout
from toolscout.config import Config, ServerConfig
from toolscout.errors import StoreError
from toolscout.models import Scope
from toolscout.policy.rules import Rules
from toolscout.ports import LiveServer
from toolscout.scout.leases import Leases
from toolscout.scout.sync import CatalogueSync
from toolscout.settings import Settings
from toolscout.storage import open_store

pytestmark = guarantee("replica:turns")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return the settings that all replicas of a test share."""
    return replace(QUICK, store=f"sqlite:///{tmp_path / 'catalogue.db'}", lease_s=0.3)


@asynccontextmanager
async def replica(settings: Settings, embedder: HashEmbedder, *servers: ServerConfig) -> AsyncIterator[Scout]:
    """Open a scout as a gateway does: its servers connect in the background."""
    async with Scout.open(settings=settings, embedder=embedder) as scout:
        await scout.connect(Config(servers=servers))
        yield scout


def live_of(scout: Scout) -> CatalogueSync:
    assert scout.sync is not None
    return scout.sync


async def settled(scout: Scout) -> None:
    await asyncio.wait_for(live_of(scout).settled(), WAIT_S)


async def names(scout: Scout) -> list[str]:
    return [match.tool.name for match in await scout.list_tools()]


@pytest.mark.process
async def test_a_replica_without_the_lease_embeds_nothing_and_serves_what_the_other_published(tmp_path, settings):
    server = fake(tmp_path, "fake", "--tools", "5").config
    slow, quick = GatedEmbedder(), HashEmbedder()
    async with replica(settings, slow, server) as one:
        await until(lambda: bool(slow.documents))
        async with replica(settings, quick, server) as other:
            await until(lambda: live_of(other).statuses()[0].state == "ready")
            called = await server_of(other).call_tool("echo", {"text": "hello"}, caller=other.caller)
            assert called["content"][0]["text"] == "hello"
            await until(lambda: bool(live_of(other).waiting))
            await _leases_are_refused(settings, 5)  # longer than a lease, which is renewed meanwhile
            assert quick.documents == []
            slow.gate.set()
            await settled(one)
            await settled(other)
            assert await names(other) == await names(one) == [f"tool{number}" for number in range(5)]
            assert quick.documents == []
            assert [report.total for report in live_of(other).reports] == [5]
            assert live_of(other).reports[0].unchanged == 5


def server_of(scout: Scout) -> LiveServer:
    server = scout.servers.get("fake")
    assert server
    return server


async def _leases_are_refused(settings: Settings, count: int) -> None:
    """Request a lease that another process holds, several times, for longer than one lease lasts."""
    store = open_store(settings, Rules())
    await store.open()
    for _ in range(count):
        assert not await store.lease("index:local/:fake", "a third", 60)
        await asyncio.sleep(settings.lease_s / 4)
    await store.close()


@pytest.mark.process
async def test_when_the_holder_died_another_takes_over(tmp_path, settings):
    server = fake(tmp_path, "fake", "--tools", "5").config
    store = open_store(settings, Rules())
    await store.open()
    assert await store.lease("index:local/:fake", "it was killed", 0.5)
    async with replica(settings, HashEmbedder(), server) as scout:
        await settled(scout)
        assert len(await names(scout)) == 5
    assert await store.lease("index:local/:fake", "who comes next", 60), "a lease is released at the end"
    await store.close()


@pytest.mark.process
async def test_one_server_that_another_replica_indexes_delays_no_other_server(tmp_path, settings):
    busy, free = fake(tmp_path, "busy", "--tools", "2").config, fake(tmp_path, "free", "--tools", "3").config
    store = open_store(settings, Rules())
    await store.open()
    assert await store.lease("index:local/:busy", "another", 60)
    async with replica(settings, HashEmbedder(), busy, free) as scout:
        await until(lambda: sum(report.total for report in live_of(scout).reports) == 3)
        await until(lambda: live_of(scout).waiting == {(Scope(), "busy")})
        assert len(await names(scout)) == 3
        await store.release("index:local/:busy", "another")
        await settled(scout)
        assert len(await names(scout)) == 5
    await store.close()


@pytest.mark.process
async def test_a_replica_whose_lease_comes_late_lists_its_server_again(tmp_path, settings):
    server = fake(tmp_path, "fake", "--names", "change", "--tools", "1")
    store = open_store(settings, Rules())
    await store.open()
    assert await store.lease("index:local/:fake", "another", 60)
    quiet = replace(settings, reindex_interval_s=60)  # so that only a late lease can be why it lists again
    async with replica(quiet, HashEmbedder(), server.config) as scout:
        await until(lambda: live_of(scout).delayed == {(Scope(), "fake")})
        await server_of(scout).call_tool("change", {}, caller=scout.caller)
        await store.release("index:local/:fake", "another")
        await settled(scout)
        assert await names(scout) == ["change", "tool0", "tool1"]
    await store.close()


@pytest.mark.process
async def test_a_server_that_fails_when_its_lease_comes_late_is_listed_again(tmp_path, settings):
    server = fake(tmp_path, "fake", "--names", "refuse_list", "--tools", "1")
    store = open_store(settings, Rules())
    await store.open()
    assert await store.lease("index:local/:fake", "another", 60)
    async with replica(settings, HashEmbedder(), server.config) as scout:
        await until(lambda: live_of(scout).delayed == {(Scope(), "fake")})
        await server_of(scout).call_tool("refuse_list", {}, caller=scout.caller)
        await store.release("index:local/:fake", "another")
        await until(lambda: bool(live_of(scout).reports))
        assert await names(scout) == ["refuse_list", "tool0"]
    await store.close()


@pytest.mark.process
async def test_a_change_that_reaches_every_replica_is_indexed_once(tmp_path, settings):
    server = fake(tmp_path, "fake", "--tools", "1").config
    embedders = [HashEmbedder() for _ in range(3)]
    async with (
        replica(settings, embedders[0], server) as one,
        replica(settings, embedders[1], server) as two,
        replica(settings, embedders[2], server) as three,
    ):
        for scout in (one, two, three):
            await settled(scout)
        for scout in (one, two, three):
            await server_of(scout).call_tool("change", {}, caller=scout.caller)
        await until(lambda: all(len(live_of(scout).reports) >= 2 for scout in (one, two, three)))
        for scout in (one, two, three):
            await settled(scout)
            assert await names(scout) == ["tool0", "tool1"]
    texts = [document.text() for embedder in embedders for document in embedder.documents]
    assert len(texts) == len(set(texts))


async def test_a_server_that_any_replica_reaches_stays_in_the_catalogue(tmp_path, settings):
    settings = replace(settings, unavailable_s=0.2)
    store = open_store(settings, Rules())
    await store.open()
    here, there = Leases(store, settings), Leases(store, replace(settings, unavailable_s=60))
    assert await here.reached_by_none("fake")
    await there.note_reached(["fake"])
    assert not await here.reached_by_none("fake")
    await here.note_reached(["other"])
    async with asyncio.timeout(WAIT_S):
        free = False
        while not free:
            free = await there.reached_by_none("other")
    await store.close()


class Frozen:
    """A store whose leases expire because no renewal succeeds."""

    def __init__(self) -> None:
        self.asked = 0

    async def lease(self, _name: str, _holder: str, _ttl_s: float) -> bool:
        self.asked += 1
        if self.asked > 1:
            raise StoreError("the database is down", hint="wait")
        return True

    async def release(self, _name: str, _holder: str) -> None:
        raise StoreError("the database is down", hint="wait")


async def test_a_lease_that_could_not_be_renewed_in_time_counts_as_lost(settings):
    store = Frozen()
    async with Leases(store, settings).try_hold(Scope(), ["fake"]) as leases:  # type: ignore[arg-type]
        assert (list(leases.until), leases.lost) == (["fake"], [])
        await until(lambda: leases.lost == ["fake"])
    assert store.asked > 1
