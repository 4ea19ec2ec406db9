"""A hostile server attacks a scout with definitions that are slow to check, while a healthy server is called."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from downstreams import fake
from embedders import HashEmbedder
from guarantees import guarantee
from toolscout import Scout, Settings
from toolscout.config import Config, ServerConfig
from toolscout.errors import InvalidArgumentsError
from toolscout.execution import argument_check
from toolscout.jsonrpc_lines import MAX_VALUES, ValueCounter, has_too_many_values
from toolscout.ports import WorkStoppedError
from toolscout.worker import WorkerPool

pytestmark = pytest.mark.process

HOSTILE = str(Path(__file__).parent.parent / "hostile_server.py")
LEAST_CALLS, CALLS_PER_S = 100, 50
SHORTEST_S = 0.05
"""Shorter times are those of a scheduler that other tests keep busy, and no measure of ours."""
SETTINGS = Settings(store="memory:", reindex_interval_s=0.05, connect_timeout_s=20.0)


def hostile(attack: str) -> ServerConfig:
    return ServerConfig(title="hostile", transport="stdio", command=sys.executable, args=(HOSTILE, attack))


@asynccontextmanager
async def attacked(folder: Path, attack: str) -> AsyncIterator[Scout]:
    """Open a scout over a healthy server, and add a hostile one while the healthy one is called 50 times a second.

    A healthy call that takes longer than its `timeout_s` fails, and with it the test. So does an attack that makes the
    slowest calls, one in twenty, take more than twice as long as before.
    """
    healthy = fake(folder, "healthy", "--names", "echo", timeout_s=1.5).config
    done, always = asyncio.Event(), asyncio.Event()
    always.set()

    async def call_healthy(scout: Scout, until: asyncio.Event) -> list[float]:
        loop, calls = asyncio.get_running_loop(), list[asyncio.Task[float]]()

        async def call() -> float:
            started = loop.time()
            await scout.call_tool("healthy__echo", {"text": "hello"})
            return loop.time() - started

        first = loop.time()
        while len(calls) < LEAST_CALLS or not until.is_set():
            calls.append(asyncio.create_task(call()))
            await asyncio.sleep(first + len(calls) / CALLS_PER_S - loop.time())
        return sorted(await asyncio.gather(*calls))

    async with Scout.open(Config(servers=(healthy,)), settings=SETTINGS, embedder=HashEmbedder()) as scout:
        quiet = await call_healthy(scout, always)
        task = asyncio.create_task(call_healthy(scout, done))
        try:
            sync = await scout.connect(Config(servers=(healthy, hostile(attack))))
            async with asyncio.timeout(60):
                await sync.settled()
            yield scout
        finally:
            done.set()
            times = await task
    assert p95(times) <= 2 * max(p95(quiet), SHORTEST_S), f"{p95(quiet):.4f} s became {p95(times):.4f} s"


def p95(times: list[float]) -> float:
    return times[len(times) * 95 // 100]


def reasons(scout: Scout) -> str:
    assert scout.sync is not None
    return " ".join(item.reason for report in scout.sync.reports for item in report.dropped)


@guarantee("fault:index")
@pytest.mark.timing
async def test_a_definition_whose_check_takes_too_long_is_dropped_and_the_rest_is_indexed(tmp_path, monkeypatch):
    from toolscout.scout import examination

    monkeypatch.setattr(examination, "_PART_S", 0.001)
    monkeypatch.setattr(examination, "_TOOL_S", 0.001)
    async with attacked(tmp_path, "dense") as scout:
        assert "took longer than" in reasons(scout)
        assert "others of the server took too long" in reasons(scout)


@guarantee("fault:schema")
@pytest.mark.timing
async def test_no_schema_holds_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(argument_check, "CHECK_S", 0.5)
    async with attacked(tmp_path, "schemas") as scout:
        for name, arguments in (
            ("pattern", {"a": "a" * 64 + "b"}),
            ("ladder", {"a": 1}),
            ("unique", {"a": [{"n": number} for number in range(20_000)]}),
        ):
            with pytest.raises(InvalidArgumentsError, match="cannot be checked"):
                await scout.call_tool(f"hostile__{name}", arguments)
        # The same tools still work with arguments that can be checked, and say what is wrong with others.
        assert (await scout.call_tool("hostile__pattern", {"a": "aaa"})).result["content"]
        assert (await scout.call_tool("hostile__unique", {"a": [1, 2]})).result["content"]
        with pytest.raises(InvalidArgumentsError, match="does not match"):
            await scout.call_tool("hostile__pattern", {"a": "b"})
        with pytest.raises(InvalidArgumentsError, match="must be integer"):
            await scout.call_tool("hostile__plain", {"a": "x"})


@guarantee("fault:index")
async def test_work_of_one_server_is_stopped_and_delays_no_other(tmp_path):
    import re

    pool = WorkerPool()
    try:
        slow = [
            asyncio.create_task(pool.run(re.search, "(a+)+$", "a" * 64 + "b", owner=("hostile",), timeout_s=0.5))
            for _ in range(4)
        ]
        assert await pool.run(re.escape, "a.b", owner=("healthy",), timeout_s=10.0) == r"a\.b"
        assert not any(task.done() for task in slow[1:])
        results = await asyncio.gather(*slow, return_exceptions=True)
        assert all(isinstance(result, WorkStoppedError) for result in results)
    finally:
        await pool.close()


@guarantee("fault:index")
@pytest.mark.parametrize("step", [1, 2, 3, 7, 1_000])
def test_values_are_counted_without_parsing(step):
    import json

    value = {"a,[{": ['\\"[,', "\\", 'x"', [], {}, [[1, 2], {"b\\": "\\\\"}]], "c": None}
    data = json.dumps(value).encode()
    counter = ValueCounter()
    for at in range(0, len(data), step):
        counter.feed(data[at : at + step])
    assert counter.count == 15


@guarantee("fault:index")
def test_a_long_text_with_many_commas_is_not_taken_for_many_values():
    import json

    text = json.dumps({"text": ', [{"' * MAX_VALUES}).encode()
    assert not has_too_many_values(text)
    assert has_too_many_values(b"[" + b"[]," * MAX_VALUES + b"0]")
