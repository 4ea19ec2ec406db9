"""Requests with several needs: how often all right tools are among the first ten, and what each step adds.

`joined` are three requests of `train_people` in a row, as people list them. The model was trained on each by itself, so
only the gains of a step are telling there.

TOOLSCOUT_BENCH=... python -m benchmarks.quality.needs [--queries 400]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.data import bench_folder, machine, markdown, rows, save
from benchmarks.quality.engines import ask
from benchmarks.quality.figures import difference, figures_of, some
from toolscout.discovery import rank, request
from toolscout.retrieval_metrics import LabelledQuery, read_queries

SETS = ("stabletoolbench", "sealtools", "joined")
QUERIES = 400
JOINED_TOOLS = 1_500
JOINS = ("{}, {} and {}", "{}, {}, then {}", "{} + {} + {}", "{} and {}, {}")
_ORDER = re.compile(
    r"(?:add|cancel|check|create|delete|find|get|list|make|move|open|read|rename|search|send|set|show|start|update)\b",
    re.IGNORECASE,
)
WAYS = ("the whole request only", "and its clauses", "and cover")


def read_set(name: str) -> tuple[list[dict[str, Any]], list[LabelledQuery]]:
    """Return the tools of a set, and its requests that have several right tools."""
    if name == "joined":
        return join_requests(random.Random(0))
    folder = bench_folder() / name
    return rows(folder / "tools.jsonl"), [item for item in read_queries(folder / "queries.jsonl") if len(item.gold) > 1]


def join_requests(chance: random.Random) -> tuple[list[dict[str, Any]], list[LabelledQuery]]:
    """Join requests of three people each to one, and put their tools among others."""
    orders = [
        item
        for item in read_queries(bench_folder() / "train_people" / "queries.jsonl")
        if len(item.gold) == 1 and len(item.query) < 110 and item.query.isascii() and _ORDER.match(item.query)
    ]
    queries = []
    for number in range(QUERIES):
        parts = chance.sample(orders, 3)
        texts = [part.query.rstrip(".!?") for part in parts]
        query = JOINS[number % len(JOINS)].format(texts[0], *(text[0].lower() + text[1:] for text in texts[1:]))
        gold = frozenset().union(*(part.gold for part in parts))
        queries.append(LabelledQuery(id=f"joined-{number}", query=query, gold=gold))
    tools = rows(bench_folder() / "mcp_catalogue" / "tools.jsonl")
    wanted = frozenset().union(*(item.gold for item in queries))
    others = chance.sample([tool["id"] for tool in tools if tool["id"] not in wanted], JOINED_TOOLS)
    return [tool for tool in tools if tool["id"] in wanted.union(others)], queries


@contextmanager
def way(number: int) -> Iterator[None]:
    """Omit what comes later than the number in WAYS."""
    split, cover = request.split_clauses, rank.cover_clauses
    request.split_clauses = split if number else lambda _: ()
    rank.cover_clauses = cover if number > 1 else lambda ranking, *_: ranking
    try:
        yield
    finally:
        request.split_clauses, rank.cover_clauses = split, cover


async def main(most: int = QUERIES) -> None:
    """Measure each way on the requests with more than one right tool."""
    result: dict[str, dict[str, Any]] = {}
    body = []
    for name in SETS:
        tools, queries = read_set(name)
        queries = some(queries, most)
        before = None
        for number, label in enumerate(WAYS):
            with way(number):
                found, _ = await ask("hybrid", tools, queries, name)
            figures = figures_of(found, len(tools))
            gap = difference(found, before) if before else None
            result.setdefault(name, {})[label] = figures | {"gain": gap}
            gained = f"{gap['ndcg@10']:+.3f} ({gap['low']:+.3f} to {gap['high']:+.3f})" if gap else ""
            cells = [f"{figures[key]:.3f}" for key in ("covered@10", "ndcg@10")]
            body.append([name, len(queries), label, *cells, gained, f"{figures['recall@5']:.3f}"])
            before = found
    text = ["# Requests with several needs", "", f"`python -m benchmarks.quality.needs`; {machine()}", ""]
    head = ["set", "requests", "searched for", "all of them in 10", "nDCG@10", "gain (interval)", "recall@5"]
    save("needs", {"machine": machine(), "sets": result}, "\n".join([*text, markdown(head, body)]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=QUERIES)
    asyncio.run(main(parser.parse_args().queries))
