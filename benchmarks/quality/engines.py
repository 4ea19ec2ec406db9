"""One interface for everything that is measured: our rankers, baselines and other projects."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.quality import peers, plain
from toolscout import Scout, __version__
from toolscout.retrieval_metrics import LabelledQuery, QueryOutcome

OURS = ("hybrid", "semantic", "keyword", "fuzzy", "boosted")
THEIRS = (*plain.PLAIN, *peers.PEERS)
BUILD = Path("build/bench")


class Missing(Exception):  # noqa: N818 - it is an outcome, not an error: the report names it
    """A ranker that could not be asked, and why."""


async def ask(
    ranker: str, tools: list[dict[str, Any]], queries: Sequence[LabelledQuery], store: str
) -> tuple[list[QueryOutcome], str]:
    """Answer every request with default settings; return what was found and the version."""
    BUILD.mkdir(parents=True, exist_ok=True)
    if ranker in OURS:
        return await _ask_us(ranker, tools, queries, store), f"toolscout {__version__}"
    requests = [item.query for item in queries]
    try:
        part = plain if ranker in plain.PLAIN else peers
        found = await asyncio.to_thread(part.answers, ranker, tools, requests)
    except (peers.PeerMissingError, FileNotFoundError) as error:
        raise Missing(str(error)) from error
    lines = zip(queries, found["found"], found["took_ms"], strict=True)
    return [QueryOutcome(labelled=item, tool_ids=tuple(ids), took_ms=ms) for item, ids, ms in lines], found["version"]


async def embed_once(pool: list[dict[str, Any]], stores: Sequence[str]) -> None:
    """Embed the distractors once and give their vectors, and nothing else, to every store."""
    base = BUILD / "catalogue.db"
    BUILD.mkdir(parents=True, exist_ok=True)
    async with Scout.open(store=f"sqlite:///{base}") as scout:
        await scout.index_tools(pool)
    for store in stores:
        shutil.copy(base, own := BUILD / f"{store}.db")
        with closing(sqlite3.connect(own)) as db:
            db.executescript("DELETE FROM tools; DELETE FROM servers; DELETE FROM scopes")


async def _ask_us(
    ranker: str, tools: list[dict[str, Any]], queries: Sequence[LabelledQuery], store: str
) -> list[QueryOutcome]:
    async with Scout.open(store=f"sqlite:///{BUILD / store}.db") as scout:
        await scout.index_tools(tools)
        await scout.warm()
        outcomes = []
        for item in queries:
            started = time.perf_counter()
            answer = await scout.search_tools(item.query, ranker=ranker)
            took_ms = (time.perf_counter() - started) * 1_000
            ids, fit = tuple(match.tool.id for match in answer), answer[0].fit if answer else None
            outcomes.append(QueryOutcome(labelled=item, tool_ids=ids, took_ms=took_ms, fit=fit))
        return outcomes
