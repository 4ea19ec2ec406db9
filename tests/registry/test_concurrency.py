"""32 threads and 200 tasks register, search and call at once, and nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

from tool_providers import Folder
from toolscout import StoreError
from toolscout.registry.loop_thread import LoopThread

THREADS, TASKS, ROUNDS = 32, 200, 2


@pytest.mark.fuzz
async def test_threads_and_tasks_register_search_and_call_at_once_and_lose_nothing(make_registry):
    registry = make_registry()
    called: Counter[str] = Counter()
    counting = threading.Lock()
    failures: list[BaseException] = []

    async def work(who: str) -> None:
        provides = who.endswith("7")
        for round_ in range(ROUNDS):
            name = f"{who}_{round_}"

            def handler(n: int, name: str = name) -> str:
                with counting:
                    called[name] += n
                return name

            schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            registry.register_tool({"name": name, "description": f"Job {name}", "inputSchema": schema}, handler, who)
            if round_ == 0 and provides:
                registry.add_provider(Folder({f"{who}_provided": "Provided"}, name=who))
            answer = await registry.search(name, ranker="fuzzy", limit=1)
            assert [match.tool.name for match in answer] == [name]
            assert (await registry.call_tool(name, {"n": 1})).content[0].text == name
        if not provides:
            return
        provided = await registry.call_tool(f"{who}_provided", {"city": "Ulm"})
        assert provided.content[0].text == f"{who}: {who}_provided in Ulm"

    def in_thread(number: int) -> None:
        try:
            asyncio.run(work(f"thread{number}"))
        except BaseException as error:  # noqa: BLE001 - it is shown by the test
            failures.append(error)

    threads = [threading.Thread(target=in_thread, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    await asyncio.gather(*(work(f"task{number}") for number in range(TASKS)))
    for thread in threads:
        await asyncio.to_thread(thread.join)

    assert failures == []
    everybody = [*(f"thread{n}" for n in range(THREADS)), *(f"task{n}" for n in range(TASKS))]
    expected = {f"{who}_{round_}" for who in everybody for round_ in range(ROUNDS)}
    assert called == Counter(dict.fromkeys(expected, 1))
    listed = {item.name for item in await registry.list_tool_metadata()}
    assert listed == expected | {f"{who}_provided" for who in everybody if who.endswith("7")}
    assert registry.problems == []


async def test_closing_a_registry_fails_the_searches_that_wait():
    started = threading.Event()

    async def nothing(_state: object) -> None:
        pass

    async def waits(_state: object) -> None:
        started.set()
        await asyncio.Event().wait()

    thread = LoopThread(object, nothing)
    waiting = asyncio.create_task(thread.run(waits))
    await asyncio.to_thread(started.wait)
    await asyncio.to_thread(thread.close)
    with pytest.raises(StoreError, match="the registry was closed"):
        await waiting
    await thread.run(nothing)
    cancelled = asyncio.create_task(thread.run(waits))
    started.clear()
    await asyncio.to_thread(started.wait)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    thread.close()
