"""Servers are added, removed and changed without a restart, and only those that differ are touched."""

import asyncio
from dataclasses import replace

import pytest

from downstreams import QUICK, fake, gone, opened, until
from toolscout.config import Config, ServerConfig
from toolscout.downstream.debounce import Debouncer
from toolscout.downstream.paging import read_all_pages
from toolscout.downstream.server import DownstreamServer
from toolscout.downstream.servers import DownstreamServers
from toolscout.errors import ServerUnavailableError
from toolscout.models import Overlay
from toolscout.settings import Settings
from toolscout.tool_keys import add_suffix


@pytest.mark.process
async def test_an_edit_adds_removes_and_replaces_only_what_differs(tmp_path):
    kept, edited, dropped, new = (fake(tmp_path, title) for title in ("kept", "edited", "dropped", "new"))
    async with opened(kept.config, edited.config, dropped.config) as here:
        same = replace(kept.config, overlay=Overlay(tags=("mine",)), source="elsewhere")
        other = replace(edited.config, env={"A": "1"})
        await here.downstream.apply(Config(servers=(same, other, new.config)))
        assert set(here.downstream.servers) == {"kept", "edited", "new"}
        assert gone(*dropped.starts)
        for key in here.downstream.servers:
            await here.state(key, "ready")
            await here.call(key, "echo")
        assert here.downstream.servers["kept"].server.overlay.tags == ("mine",)
        assert [len(server.starts) for server in (kept, edited, new)] == [1, 2, 1]
    assert gone(*kept.starts, *edited.starts, *new.starts)


@pytest.mark.process
async def test_a_server_is_switched_off_and_on_without_a_restart(tmp_path):
    server = fake(tmp_path)
    async with opened(server.config) as here:
        await here.downstream.apply(Config(servers=(replace(server.config, enabled=False),)))
        assert here.downstream.servers["fake"].status.state == "disabled"
        assert gone(*server.starts)
        with pytest.raises(ServerUnavailableError, match="switched off"):
            await here.call("fake", "echo")
        await here.downstream.apply(Config(servers=(server.config,)))
        await here.state("fake", "ready")
        await here.call("fake", "echo")


async def test_titles_with_the_same_slug_get_different_slugs_and_keep_them(tmp_path):
    def of(*titles):
        return Config(servers=tuple(ServerConfig(title=title, transport="stdio", enabled=False) for title in titles))

    downstream = DownstreamServers(of("My Server", "My-Server", "My/Server"), QUICK)
    slugs = {"My-Server", add_suffix("My-Server", "My Server"), add_suffix("My-Server", "My/Server")}
    assert set(downstream.servers) == slugs
    await downstream.apply(of("My Server"))
    assert set(downstream.servers) == {add_suffix("My-Server", "My Server")}
    await downstream.close()
    restarted = DownstreamServers(of("My Server"), QUICK, stored_titles={"My-Server": "My_Server"})
    assert set(restarted.servers) == {add_suffix("My-Server", "My Server")}
    await restarted.close()


async def test_closing_twice_and_closing_before_starting_are_harmless(tmp_path):
    downstream = DownstreamServers(Config(servers=(fake(tmp_path).config,)), QUICK)
    await downstream.close()
    await downstream.close()


async def test_a_thousand_triggers_make_one_run_and_never_two_at_once():
    runs, running = 0, 0
    release = asyncio.Event()

    async def action():
        nonlocal runs, running
        runs, running = runs + 1, running + 1
        assert running == 1
        await release.wait()
        running -= 1
        if runs == 1:
            raise RuntimeError("this must not prevent the next run")

    debouncer = Debouncer(action, 0.01)
    for _ in range(1_000):
        debouncer.trigger()
    await until(lambda: runs == 1)
    for _ in range(1_000):
        debouncer.trigger()
    release.set()
    await until(lambda: runs == 2)
    await asyncio.sleep(0.03)
    assert runs == 2
    debouncer.trigger_in(0.0)
    await until(lambda: runs == 3)
    await debouncer.close()


@pytest.mark.process
async def test_a_tool_list_that_expires_is_reported(tmp_path):
    async with opened(fake(tmp_path).config) as here:
        await here.changed("fake", 1)
        server = here.downstream.servers["fake"]
        assert isinstance(server, DownstreamServer)
        server.ttl_s = 0.1
        here.downstream.report_again("fake")
        await here.changed("fake", 4)
        server.ttl_s = None


@pytest.mark.parametrize(
    ("pages", "tools", "reason"),
    [
        ([{"tools": [{"name": "a"}], "nextCursor": "1"}, {"tools": [{"name": "b"}]}], 2, ""),
        ([{"tools": [{"name": "a"}], "nextCursor": "1"}, {"tools": [{"name": "b"}], "nextCursor": "1"}], 2, "repeats"),
        ([{"tools": ["nonsense", {"name": "a"}, None]}], 1, ""),
        ([{"tools": "nonsense", "nextCursor": 7}], 0, ""),
        ([{"tools": [{"name": "x" * 100}] * 100, "nextCursor": "1"}], 100, "bytes"),
    ],
)
async def test_pages_are_read_within_bounds(pages, tools, reason):
    remaining = list(pages)

    async def fetch(params):
        return remaining.pop(0)

    result = await read_all_pages(fetch, Settings(max_line_bytes=1_000))
    assert len(result.tools) == tools
    assert reason in result.truncated
    assert bool(reason) == bool(result.truncated)


async def test_the_shortest_time_to_live_of_all_pages_counts():
    remaining = [{"tools": [], "ttlMs": 5_000, "nextCursor": "1"}, {"tools": [], "ttlMs": 2_000}]

    async def fetch(params):
        return remaining.pop(0)

    assert (await read_all_pages(fetch, Settings())).ttl_s == 2.0


async def test_endless_pages_without_tools_are_bounded():
    requests = 0

    async def fetch(params):
        nonlocal requests
        requests += 1
        return {"tools": [], "nextCursor": str(requests)}

    result = await read_all_pages(fetch, Settings())
    assert result.tools == ()
    assert "pages" in result.truncated
    assert requests == 1_000
