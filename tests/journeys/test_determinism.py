"""The same corpus and query give the same order and scores: in every insertion order and in every process."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guarantees import guarantee
from toolscout import Scout

pytestmark = guarantee("rank:deterministic")

QUERIES = [
    "send an email to the team",
    "list the open pull requests and merge the oldest one, then tell the channel about it",
    "create issue",
    "take a screnshot",
    "天气",
]
RANKERS = ("hybrid", "semantic", "keyword", "fuzzy", "boosted")

PROGRAM = """
import asyncio, json, sys
from toolscout import Scout

async def main():
    rows = json.loads(sys.stdin.readline())
    queries = json.loads(sys.stdin.readline())
    async with Scout.open(tools=rows) as scout:
        answers = []
        for ranker in json.loads(sys.stdin.readline()):
            for answer in await scout.search_tools(queries, ranker=ranker, threshold=0):
                answers.append([[match.tool.key, match.score] for match in answer])
        related = await scout.get_related_tools("github__create_issue", limit=20)
        answers.append([[match.tool.key, match.relationship] for match in related])
        print(json.dumps(answers))

asyncio.run(main())
"""


async def _answers(scout: Scout) -> list[Any]:
    answers: list[Any] = []
    for ranker in RANKERS:
        for answer in await scout.search_tools(QUERIES, ranker=ranker, threshold=0):
            answers.append([[match.tool.key, match.score] for match in answer])
    related = await scout.get_related_tools("github__create_issue", limit=20)
    answers.append([[match.tool.key, match.relationship] for match in related])
    return answers


@pytest.mark.fuzz
async def test_the_order_of_insertion_changes_no_place_and_no_score(
    sample_scout: Scout, open_scout: Callable[..., Scout], sample_rows: list[dict[str, Any]]
) -> None:
    expected = await _answers(sample_scout)
    for seed in (1, 2):
        shuffled = list(sample_rows)
        random.Random(seed).shuffle(shuffled)
        async with open_scout(shuffled) as scout:
            assert await _answers(scout) == expected


@pytest.mark.fuzz
async def test_indexing_in_parts_or_in_a_file_changes_no_place_and_no_score(
    sample_scout: Scout, open_scout: Callable[..., Scout], sample_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    expected = await _answers(sample_scout)
    servers = sorted({row["server"] for row in sample_rows}, reverse=True)
    url = f"sqlite:///{tmp_path / 'catalogue.db'}"
    async with open_scout(store=url) as scout:
        for server in servers:
            await scout.index_tools([row for row in sample_rows if row["server"] == server])
        assert await _answers(scout) == expected
    async with open_scout(store=url) as scout:
        assert await _answers(scout) == expected


@pytest.mark.process
async def test_another_process_with_another_hash_seed_agrees(
    sample_scout: Scout, sample_rows: list[dict[str, Any]]
) -> None:
    expected = await _answers(sample_scout)
    request = "\n".join(json.dumps(value) for value in (sample_rows[::-1], QUERIES, RANKERS))
    assert await asyncio.to_thread(_answers_of_another_process, request) == expected


def _answers_of_another_process(request: str) -> Any:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=request,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "4242"},
    )
    return json.loads(process.stdout)
