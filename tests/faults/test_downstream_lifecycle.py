"""Servers that do not start, crash again and again or change their tools delay no other server and are reported."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from downstreams import QUICK, WAIT_S, fake, gone, healthy, opened, until
from guarantees import guarantee
from servers import stdio
from toolscout.config import Config
from toolscout.downstream import circuit_breaker
from toolscout.downstream.circuit_breaker import CircuitBreaker
from toolscout.downstream.servers import DownstreamServers
from toolscout.errors import CallError, CallTimeoutError, ServerUnavailableError

pytestmark = pytest.mark.process


@guarantee("fault:start")
async def test_servers_that_are_slow_or_never_start_delay_nobody(tmp_path):
    mute = fake(tmp_path, "mute", "--start", "never")
    slow = fake(tmp_path, "slow", "--start", "slow")
    leaving = fake(tmp_path, "leaving", "--start", "exit")
    missing = stdio("missing", "/no/such/command")
    well = fake(tmp_path, "healthy")
    configs = (mute.config, slow.config, leaving.config, missing, well.config)
    settings = replace(QUICK, connect_timeout_s=5.0, backoff_first_s=5.0, backoff_most_s=5.0)
    async with opened(*configs, settings=settings, ready=False) as here:
        await here.state("healthy", "ready")
        assert here.downstream.servers["slow"].status.state == "connecting"
        async with healthy(here):
            assert "not found" in (await here.state("missing", "failed")).status.detail
            status = (await here.state("leaving", "failed")).status
            assert "exit 4" in status.detail
            assert "cannot find my settings" in status.stderr
            # A call to a server that is still starting waits for it. One to a server that is down fails at once.
            assert (await here.call("slow", "echo"))["content"][0]["text"] == "ok"
            with pytest.raises(ServerUnavailableError, match="nothing was sent"):
                await here.call("missing", "echo")
            assert "did not answer" in (await here.state("mute", "failed")).status.detail
        await here.changed("mute", 1)
    assert gone(*mute.starts, *slow.starts, *leaving.starts)


@guarantee("fault:start")
async def test_starting_returns_before_any_server_has_answered(tmp_path):
    mute = fake(tmp_path, "mute", "--start", "never")
    downstream = DownstreamServers(Config(servers=(mute.config,)), QUICK)

    async def ignore(key):
        pass

    await downstream.start(ignore)
    assert downstream.servers["mute"].status.state == "connecting"
    await downstream.close()
    assert gone(*mute.starts)


@guarantee("fault:breaker")
async def test_five_failures_open_the_circuit_breaker_and_then_nothing_is_sent(tmp_path):
    broken, well = fake(tmp_path), fake(tmp_path, "healthy")
    async with opened(broken.config, well.config) as here, healthy(here):
        for number in range(5):
            await broken.started(number + 1)
            await here.state("fake", "ready")
            with pytest.raises(ServerUnavailableError, match="went away"):
                await here.call("fake", "crash_before")
        await broken.started(6)
        await here.state("fake", "ready")
        for _ in range(3):
            with pytest.raises(ServerUnavailableError, match="failed 5 times in a row"):
                await here.call("fake", "crash_before")
    assert len(broken.calls("crash_before")) == 5
    assert gone(*broken.starts)


@guarantee("fault:breaker")
async def test_after_the_pause_one_call_is_tried_and_success_closes_the_circuit_breaker(tmp_path):
    broken = fake(tmp_path)
    settings = replace(QUICK, breaker_failures=2, breaker_pause_s=0.3)
    async with opened(broken.config, settings=settings) as here:
        for number in range(2):
            await broken.started(number + 1)
            await here.state("fake", "ready")
            with pytest.raises(ServerUnavailableError):
                await here.call("fake", "crash_before")
        await broken.started(3)
        await here.state("fake", "ready")
        async with asyncio.timeout(5):
            while True:
                try:
                    await here.call("fake", "echo")
                    break
                except ServerUnavailableError:
                    await asyncio.sleep(0.02)
        await here.call("fake", "echo")
    assert len(broken.calls("echo")) == 2


@guarantee("fault:breaker")
def test_a_server_that_answers_pings_is_tried_after_5_seconds():
    now = [0.0]
    breaker = CircuitBreaker("x", failures=1, pause_s=30.0, clock=lambda: now[0])
    breaker.fail()
    breaker.note_alive()
    now[0] = 4.9
    assert breaker.open
    now[0] = 5.1
    assert breaker.enter()
    breaker.fail()
    assert breaker.open


@guarantee("fault:breaker")
def test_the_circuit_breaker_is_half_open_after_30_seconds_and_allows_one_call():
    now = [0.0]
    breaker = CircuitBreaker("x", failures=5, pause_s=30.0, clock=lambda: now[0])
    for _ in range(5):
        breaker.enter()
        breaker.fail()
    now[0] = 29.9
    with pytest.raises(ServerUnavailableError):
        breaker.enter()
    now[0] = 30.0
    breaker.enter()
    with pytest.raises(ServerUnavailableError):
        breaker.enter()
    breaker.fail()
    with pytest.raises(ServerUnavailableError):
        breaker.enter()
    now[0] = 60.0
    breaker.enter()
    breaker.succeed()
    breaker.enter()
    breaker.enter()


@guarantee("fault:breaker")
async def test_errors_of_tools_do_not_count_as_failures_of_the_server(tmp_path):
    whole = fake(tmp_path)
    async with opened(whole.config) as here:
        for _ in range(7):
            assert (await here.call("fake", "is_error"))["isError"] is True
        assert (await here.call("fake", "echo"))["content"]


@guarantee("fault:changed")
async def test_a_tool_list_that_changes_during_a_call_is_reported_and_the_call_is_answered(tmp_path):
    changing, well = fake(tmp_path), fake(tmp_path, "healthy")
    async with opened(changing.config, well.config) as here, healthy(here):
        await here.changed("fake", 1)
        server = here.downstream.servers["fake"]
        assert len(await server.list_tools()) == 1
        assert (await here.call("fake", "change"))["content"][0]["text"] == "ok"
        await here.changed("fake", 2)
        assert len(await server.list_tools()) == 2


@guarantee("fault:changed")
async def test_a_restarted_server_is_reported_because_its_tools_may_have_changed(tmp_path):
    broken = fake(tmp_path)
    async with opened(broken.config) as here:
        await here.changed("fake", 1)
        await here.call("fake", "crash_after")
        await here.changed("fake", 2)
        assert here.downstream.servers["fake"].status.state == "ready"


@guarantee("fault:storm")
async def test_a_storm_of_notifications_makes_one_report_per_interval_and_delays_no_answer(tmp_path):
    stormy, well = fake(tmp_path), fake(tmp_path, "healthy")
    settings = replace(QUICK, reindex_interval_s=0.5)
    running = most = 0

    async def on_change(key):
        nonlocal running, most
        if key != "fake":
            return
        running += 1
        most = max(most, running)
        changes.append(key)
        await asyncio.sleep(0.01)
        running -= 1

    changes: list[str] = []
    servers = opened(stormy.config, well.config, settings=settings, on_change=on_change)
    async with servers as here, healthy(here):
        await here.changed("fake", 1)
        changes.clear()
        began = time.monotonic()
        for _ in range(5):
            await here.call("fake", "storm", {"count": 2_000})
        await here.call("fake", "echo")
        await until(lambda: bool(changes))
        # 10,000 notifications: one report for each interval that has begun, and one more at most.
        assert changes.count("fake") <= (time.monotonic() - began) / 0.5 + 2
        assert most == 1


@guarantee("catalog:bounds")
async def test_an_endless_cursor_is_bounded(tmp_path):
    endless = fake(tmp_path, "fake", "--endless")
    settings = replace(QUICK, max_tools=50)
    async with opened(endless.config, settings=settings) as here:
        tools = await here.downstream.servers["fake"].list_tools()
        assert len(tools) == 51
        assert "more than 50 tools" in here.downstream.servers["fake"].status.detail
        assert (await here.call("fake", "echo"))["content"]


@guarantee("catalog:bounds")
async def test_every_page_of_a_long_list_is_read(tmp_path):
    long = fake(tmp_path, "fake", "--tools", "250")
    async with opened(long.config) as here:
        tools = await here.downstream.servers["fake"].list_tools()
    assert [tool["name"] for tool in tools] == [f"tool{number}" for number in range(250)]
    assert tools[0]["inputSchema"] == {"type": "object", "default": None}


@guarantee("fault:breaker")
async def test_a_frozen_server_is_called_again_soon_after_it_wakes_up(tmp_path, monkeypatch):
    monkeypatch.setattr(circuit_breaker, "_ALIVE_S", 0.5)
    frozen = fake(tmp_path, "frozen", timeout_s=1.0)
    async with opened(frozen.config, settings=replace(QUICK, breaker_pause_s=120.0)) as here:
        await here.call("frozen", "echo")
        [process] = frozen.starts
        os.kill(process, signal.SIGSTOP)
        try:
            failed = await asyncio.gather(*(here.call("frozen", "echo") for _ in range(5)), return_exceptions=True)
            assert all(isinstance(error, CallTimeoutError) for error in failed)
            with pytest.raises(ServerUnavailableError, match="5 times in a row"):
                await here.call("frozen", "echo")
        finally:
            os.kill(process, signal.SIGCONT)
        async with asyncio.timeout(WAIT_S):
            while True:
                with suppress(CallError):
                    assert (await here.call("frozen", "echo"))["content"][0]["text"] == "ok"
                    break
                await asyncio.sleep(0.05)
