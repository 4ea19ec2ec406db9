"""Editions of one catalogue, each different from all others, and the process that publishes them for a test.

    python tests/editions.py once STORE NUMBER MODEL   publish one edition and end
    python tests/editions.py open STORE COUNT          fork so many processes that open the store at once
    python tests/editions.py loop                      for each line `FIRST KILL_AT STORE` of stdin, fork a writer

STORE is the path of a SQLite file, or an address. A writer publishes edition after edition from FIRST, and prints each
number once it is published. It is killed by the test, or kills itself with SIGKILL at the KILL_AT-th statement that it
sends to the database. Forking saves the start of Python for each of many kills. The forking process does nothing else.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import psycopg

from embedders import HashEmbedder
from toolscout.policy.rules import Rules
from toolscout.ports import Store
from toolscout.scout import Scout
from toolscout.settings import Settings
from toolscout.storage import open_store
from toolscout.storage.sqlite.store import SqliteStore


def edition(number: int) -> list[dict[str, str]]:
    """Write an edition: names and number of tools change from one to the next, and every description does."""
    names = [f"tool_{place}" for place in range(20 + number % 3 * 5)] + [f"only_in_{number}"]
    return [
        {"name": name, "server": f"server-{place % 2}", "description": f"Edition {number} of {name}."}
        for place, name in enumerate(names)
    ]


def editions_store(path: str) -> Store:
    """Give the store at a path or an address, not opened yet."""
    return open_store(Settings(store=path if "://" in path else f"sqlite:///{path}"), Rules())


def open_editions(path: str, model_id: str = "hash-1", *, store: Store | None = None) -> Scout:
    """Open the scout that both sides of a test use. A killed writer's leases expire soon, so the next one can go on."""
    settings = Settings(lease_s=0.2)
    return Scout(store=store or editions_store(path), embedder=HashEmbedder(model_id), settings=settings)


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


async def _once(path: str, number: int, model_id: str) -> None:
    async with open_editions(path, model_id) as scout:
        await scout.index_tools(edition(number))


async def _publish_on_and_on(path: str, first: int, kill_at: int) -> None:
    store = editions_store(path)
    async with open_editions(path, store=store) as scout:
        if kill_at:
            statements = itertools.count(1)

            def count(_: str = "") -> None:
                if next(statements) == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

            if isinstance(store, SqliteStore):
                store.connection.set_trace_callback(count)
            else:
                _before_each_statement(count)
        for number in itertools.count(first):
            await scout.index_tools(edition(number))
            _say(f"published {number}")


def _before_each_statement(count: Callable[[], None]) -> None:
    execute = psycopg.AsyncConnection.execute

    async def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        count()
        return await execute(self, *arguments, **options)

    psycopg.AsyncConnection.execute = counted  # type: ignore[method-assign]


async def _open(path: str) -> None:
    async with open_editions(path):
        pass


def _open_at_once(path: str, count: int) -> None:
    children = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            asyncio.run(_open(path))
            os._exit(0)
        children.append(child)
    _say(f"ended {sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 for child in children)}")


def _loop() -> None:
    for line in sys.stdin:
        first, kill_at, path = line.strip().split(" ", 2)
        child = os.fork()
        if child == 0:
            asyncio.run(_publish_on_and_on(path, int(first), int(kill_at)))
        _say(f"writer {child}")
        _, status = os.waitpid(child, 0)
        _say(f"ended {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    if sys.argv[1] == "once":
        asyncio.run(_once(sys.argv[2], int(sys.argv[3]), sys.argv[4]))
    elif sys.argv[1] == "open":
        _open_at_once(sys.argv[2], int(sys.argv[3]))
    else:
        _loop()
