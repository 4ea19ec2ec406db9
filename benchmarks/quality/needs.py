"""Requests with several needs: how often all right tools are among the first ten, and what each step adds.

TOOLSCOUT_BENCH=... python -m benchmarks.quality.needs [--queries 400]
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.data import bench_folder, machine, markdown, rows, save
from benchmarks.quality.engines import ask
from benchmarks.quality.figures import difference, figures_of, some
from toolscout.discovery import rank, request
from toolscout.retrieval_metrics import read_queries

SETS = ("stabletoolbench", "sealtools")
QUERIES = 400
WAYS = ("the whole request only", "and its clauses", "and cover")


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
        tools = rows(bench_folder() / name / "tools.jsonl")
        queries = [item for item in read_queries(bench_folder() / name / "queries.jsonl") if len(item.gold) > 1]
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
