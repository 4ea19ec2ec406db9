"""The stores of the contract suite. To add an engine, name it in `ENGINES` and return its address in `new_url`."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from catalogues import OpenStore
from toolscout.policy.rules import Rules
from toolscout.ports import AccessFilter, Store
from toolscout.settings import Settings
from toolscout.storage import open_store

ENGINES = ("memory", "sqlite", "postgres", "postgres-large")
"""`postgres` answers from memory as SQLite does. `postgres-large` searches everything in the database."""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Return each engine in turn."""
    return str(request.param)


@pytest.fixture
def new_url(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], str]:
    """Return a function that returns the address of an empty store."""
    if engine.startswith("postgres"):
        fresh: Callable[[], str] = request.getfixturevalue("database")
        return fresh
    numbers = itertools.count()
    return lambda: "memory:" if engine == "memory" else f"sqlite:///{tmp_path / f'catalogue-{next(numbers)}.db'}"


@pytest.fixture
async def new_store(engine: str, new_url: Callable[[], str]) -> AsyncIterator[OpenStore]:
    """Return a function that opens empty stores, with any settings and access filter. They are closed at the end."""
    opened: list[Store] = []

    async def open_one(access: AccessFilter | None = None, **settings: Any) -> Store:
        if engine == "postgres-large":
            settings = {"resident_tools": 0, **settings}
        store = open_store(Settings(store=new_url(), **settings), access or Rules())
        opened.append(store)
        await store.open()
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(new_store: OpenStore) -> Store:
    """Return one empty store."""
    return await new_store()


@pytest.fixture
def url(database: Callable[[], str]) -> str:
    """Return the address of one new PostgreSQL database."""
    return database()


@pytest.fixture
async def new_replica(url: str) -> AsyncIterator[Callable[..., Any]]:
    """Return a function that opens replicas on this database, with any settings. They are closed at the end."""
    from toolscout.storage.postgres.store import PostgresStore

    stores: list[Store] = []

    async def open_one(**settings: Any) -> PostgresStore:
        store = open_store(Settings(store=url, **settings), Rules())
        assert isinstance(store, PostgresStore)
        stores.append(store)
        await store.open()
        return store

    yield open_one
    for store in stores:
        await store.close()
