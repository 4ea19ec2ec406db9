"""No process outlives the gateway: not after a normal end, not after a signal, not after kill -9."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from downstreams import Opened, alive, fake, gone, opened, until
from guarantees import guarantee
from toolscout.config import ServerConfig
from toolscout.downstream.pace import Pace
from toolscout.downstream.process import StderrBuffer, open_process
from toolscout.downstream.reaper import Reaper, descendants
from toolscout.settings import Settings

pytestmark = pytest.mark.process

GATEWAY = textwrap.dedent(
    """
    import asyncio, signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background hands down "ignore"
    from toolscout.config import Config, ServerConfig
    from toolscout.downstream.servers import DownstreamServers
    from toolscout.models import Caller
    from toolscout.settings import Settings

    async def main():
        config = ServerConfig(title="fake", transport="stdio", command=sys.executable, args=tuple(sys.argv[1:]))
        downstream = DownstreamServers(Config(servers=(config,)), Settings())
        ready = asyncio.Event()

        async def on_change(key):
            ready.set()

        await downstream.start(on_change)
        await ready.wait()
        server = downstream.servers["fake"]
        for tool, arguments in (("grandchild", {}), ("grandchild", {"setsid": True}), ("stubborn", {})):
            result = await server.call_tool(tool, arguments, caller=Caller())
            print(result["content"][0]["text"], flush=True)
        print("ready", flush=True)
        await asyncio.sleep(600)

    asyncio.run(main())
    """
)


@guarantee("fault:orphans")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_gateway_that_is_killed_leaves_no_process(tmp_path, number):
    server = fake(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", GATEWAY, *server.config.args],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as gateway:
        assert gateway.stdout
        lines = [gateway.stdout.readline().strip() for _ in range(4)]
        assert lines[-1] == "ready"
        family = [int(line) for line in lines[:3]]
        assert all(alive(pid) for pid in family)
        os.kill(gateway.pid, number)
        try:
            gateway.wait(timeout=20)
        finally:
            gateway.kill()
    assert gone(*family, *server.starts)


@guarantee("fault:orphans")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
async def test_toolscout_serve_that_is_killed_leaves_no_process(tmp_path, number):
    server = fake(tmp_path, "fake", "--family")
    file = tmp_path / "mcp.json"
    entry = {"command": server.config.command, "args": list(server.config.args)}
    file.write_text(json.dumps({"mcpServers": {"fake": entry}}), "utf-8")
    command = [sys.executable, "-m", "toolscout", "serve", "--config", str(file), "--store", "memory:"]
    quiet = asyncio.subprocess.DEVNULL
    gateway = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=quiet, stderr=quiet)
    await server.until("tools/list")
    assert len(server.starts) == 3
    assert all(alive(pid) for pid in server.starts)
    gateway.send_signal(number)
    await asyncio.wait_for(gateway.wait(), 20)
    assert await asyncio.to_thread(gone, *server.starts)


@guarantee("fault:orphans")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
async def test_a_process_that_hides_does_not_outlive_toolscout_serve(tmp_path, number):
    server = fake(tmp_path, "fake", "--hidden")
    file = tmp_path / "mcp.json"
    entry = {"command": server.config.command, "args": list(server.config.args)}
    file.write_text(json.dumps({"mcpServers": {"fake": entry}}), "utf-8")
    command = [sys.executable, "-m", "toolscout", "serve", "--config", str(file), "--store", "memory:"]
    quiet = asyncio.subprocess.DEVNULL
    gateway = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=quiet, stderr=quiet)
    await server.until("tools/list")
    (hidden,) = server.starts[1:]
    try:
        assert hidden in descendants(gateway.pid)
        # The reaper looks twice a second. What starts in between a look and a kill -9 is not found.
        await asyncio.sleep(1.2)
        gateway.send_signal(number)
        await asyncio.wait_for(gateway.wait(), 20)
        assert await asyncio.to_thread(gone, *server.starts)
    finally:
        with suppress(ProcessLookupError):
            os.kill(hidden, signal.SIGKILL)


@guarantee("fault:orphans")
def test_adopted_orphans_that_ended_are_collected():
    program = """if True:
        import os, subprocess, sys, time
        from toolscout.downstream.reaper import Reaper
        reaper = Reaper(adopt=True)
        orphan = "import subprocess; subprocess.Popen(['true'])"
        subprocess.run([sys.executable, "-I", "-S", "-c", orphan])
        deadline = time.monotonic() + 10
        def children():
            return open(f"/proc/self/task/{os.getpid()}/children").read().split()
        while not children() and time.monotonic() < deadline:
            time.sleep(0.01)
        while children() and time.monotonic() < deadline:
            reaper.collect()
            time.sleep(0.01)
        print(len(children()))
    """
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "0"


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def _pid(here: Opened, tool: str, **arguments) -> int:
    return int((await here.call("fake", tool, arguments))["content"][0]["text"])


@guarantee("fault:orphans")
async def test_closing_ends_all_descendants_even_in_their_own_session_or_ignoring_signals(tmp_path):
    server = fake(tmp_path)
    async with opened(server.config) as here:
        family = [
            await _pid(here, "grandchild"),
            await _pid(here, "grandchild", setsid=True),
            await _pid(here, "stubborn"),
        ]
        assert all(alive(pid) for pid in family)
    assert not any(alive(pid) for pid in (*family, *server.starts))


@guarantee("fault:orphans")
async def test_a_server_that_crashes_takes_its_children_with_it(tmp_path):
    server = fake(tmp_path)
    async with opened(server.config) as here:
        child = await _pid(here, "grandchild")
        await here.call("fake", "crash_after")
        await server.started(2)
        assert await asyncio.to_thread(gone, child)


@guarantee("fault:orphans")
def test_a_reaper_that_was_killed_is_started_again():
    reaper = Reaper()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True) as child:
        reaper.add(child.pid)
        first = reaper.pid
        assert first
        os.kill(first, signal.SIGKILL)
        assert gone(first)
        reaper.add(child.pid)
        assert reaper.pid != first
        reaper.close()
        assert child.wait(timeout=20) == -signal.SIGTERM


@guarantee("fault:orphans")
async def test_a_cancelled_shutdown_still_closes_the_pipes_and_leaves_the_group_to_the_reaper():
    stubborn = """if True:
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print('{"jsonrpc": "2.0", "method": "started", "params": {"pid": %d}}' % os.getpid(), flush=True)
        time.sleep(60)
    """
    config = ServerConfig(title="fake", transport="stdio", command=sys.executable, args=("-c", stubborn))
    reaper, opened_stream = Reaper(), asyncio.get_running_loop().create_future()
    files = open_files()

    async def hold():
        async with open_process(config, Settings(), reaper=reaper, errors=StderrBuffer(100), pace=Pace()) as (read, _):
            opened_stream.set_result(read)
            await asyncio.Event().wait()

    task = asyncio.create_task(hold())
    async with asyncio.timeout(10):
        read = await opened_stream
        process = (await read.receive()).message.params["pid"]
        task.cancel()
        with pytest.raises(anyio.EndOfStream):  # the shutdown has begun
            await read.receive()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(reaper.close)
    await until(lambda: open_files() <= files)
    assert await asyncio.to_thread(gone, process)
