"""The same corpus and query give the same order: over processes, insertion orders and stores."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import orders
from guarantees import guarantee
from toolscout.settings import Settings

pytestmark = guarantee("rank:deterministic", "store:contract")


@pytest.fixture(scope="module")
async def expected(embedder: Any) -> dict[str, Any]:
    """Give the answers of this process over a catalogue in memory."""
    return await orders.answers("memory:", 0, embedder)


@pytest.mark.fuzz
def test_the_answers_are_worth_comparing(expected: dict[str, Any]) -> None:
    assert all(len(expected[f"{ranker}: send an email to a customer"]) > 1 for ranker in orders.RANKERS)
    assert expected["related"]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_insertion_order_and_store_do_not_matter(
    expected: dict[str, Any], embedder: Any, tmp_path: Path, store: str, seed: int
) -> None:
    url = "memory:" if store == "memory" else f"sqlite:///{tmp_path / 'catalogue.db'}"
    assert await orders.answers(url, seed, embedder) == expected


@pytest.mark.parametrize("resident_tools", [50_000, 0], ids=["postgres", "postgres-large"])
async def test_postgresql_answers_the_same_from_memory_and_in_the_database(
    expected: dict[str, Any], embedder: Any, database: Callable[[], str], resident_tools: int
) -> None:
    settings = Settings(resident_tools=resident_tools)
    assert await orders.answers(database(), 6, embedder, settings) == expected


@pytest.mark.process
@pytest.mark.parametrize(("seed", "hash_seed"), [(4, "1"), (5, "4242")])
async def test_another_process_answers_the_same(
    expected: dict[str, Any], tmp_path: Path, seed: int, hash_seed: str
) -> None:
    url = f"sqlite:///{tmp_path / 'catalogue.db'}"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(orders.__file__)),
        url,
        str(seed),
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0
    assert json.loads(output) == expected
