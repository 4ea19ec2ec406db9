"""The stores of the contract suite. Another engine joins by a line in `ENGINES` and its address in `_url`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from catalogues import OpenStore
from toolscout.policy.rules import may_see
from toolscout.ports import Predicate, Store
from toolscout.settings import Settings
from toolscout.storage import open_store

ENGINES = ("memory", "sqlite")


def _url(engine: str, folder: Path, number: int) -> str:
    return "memory:" if engine == "memory" else f"sqlite:///{folder / f'catalogue-{number}.db'}"


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Name each engine in turn."""
    return str(request.param)


@pytest.fixture
async def new_store(engine: str, tmp_path: Path) -> AsyncIterator[OpenStore]:
    """Give what opens empty stores of the engine, with any settings and predicate; they are closed at the end."""
    opened: list[Store] = []

    async def made(predicate: Predicate = may_see, **settings: Any) -> Store:
        store = open_store(Settings(store=_url(engine, tmp_path, len(opened)), **settings), predicate)
        opened.append(store)
        await store.open()
        return store

    yield made
    for store in opened:
        await store.close()


@pytest.fixture
async def store(new_store: OpenStore) -> Store:
    """Give one empty store."""
    return await new_store()
