"""Search, index and publish at 15k, 100k and 1M tools with 1, 100 and 10,000 tenants, compared with SQLite.

    TOOLSCOUT_BENCH=... python -m benchmarks.scale [--sizes 15000 100000 1000000] [--tenants 1 100 10000]

PostgreSQL is the same as in the tests. It has a gigabyte of shared buffers and runs on the machine of the client.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.postgres_server import Databases, PostgresServer

from benchmarks.data import RESULTS, machine, markdown, save
from benchmarks.scale import corpus as corpora
from benchmarks.scale import load, measure
from toolscout import Scout, Settings
from toolscout.storage.postgres import hnsw

SIZES, TENANTS = (15_000, 100_000, 1_000_000), (1, 100, 10_000)
_OPTIONS = (
    "shared_buffers=1GB",
    "maintenance_work_mem=1GB",
    "max_wal_size=8GB",
    "work_mem=64MB",
    "max_parallel_workers_per_gather=0",
    "jit=off",
)


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[Scout]:
    """Open a scout whose queries are embedded once."""
    async with Scout.open(settings=Settings(store=url, **settings)) as scout:
        yield scout


async def in_postgres(databases: Databases, corpus: Any, size: int, tenants: int) -> list[dict[str, Any]]:
    """Measure PostgreSQL: as it would be used, and for one tenant also with everything in the database."""
    results = []
    url = databases.fresh()
    filled: dict[str, Any] = {}
    if tenants > 1:
        load.fill_postgres(url, corpus, size, tenants)
    async with opened(url) as scout:
        if tenants == 1:
            filled = await without_graph(scout, corpus, size)
        in_database = load.tenant_name(0) in scout._store.tenants_in_database
        if in_database:
            filled |= await with_graph(scout, corpus)
        engine = "postgres, in the database" if in_database else "postgres"
        row = await measure.searches(scout, corpus, tenants)
        if in_database:
            row |= await measure.recall(scout._store, scout, corpus)
        row |= await measure.publications(scout, corpus, size, tenants)
        results.append(
            {"load": machine()["load"], "engine": engine, "tools": size, "tenants": tenants, **filled, **row}
        )
    databases.drop()
    if tenants == 1 and not in_database:
        url = databases.fresh()
        async with opened(url, resident_tools=0, exact_rows=1_000) as scout:
            filled = await without_graph(scout, corpus, size)
            filled |= await with_graph(scout, corpus)
            row = await measure.searches(scout, corpus, 1) | await measure.recall(scout._store, scout, corpus)
            row |= await measure.publications(scout, corpus, size, 1)
        results.append(
            {
                "load": machine()["load"],
                "engine": "postgres, in the database",
                "tools": size,
                "tenants": 1,
                **filled,
                **row,
            }
        )
        databases.drop()
    return results


async def without_graph(scout: Scout, corpus: Any, size: int) -> dict[str, float]:
    """Publish everything before there is a graph to keep, as a first indexing does."""
    usual = scout._store.in_database.exact_rows
    scout._store.in_database.exact_rows = 10**9
    rate = await measure.publish_all(scout, corpus, size)
    scout._store.in_database.exact_rows = usual
    return rate


async def with_graph(scout: Scout, corpus: Any) -> dict[str, float]:
    """Build the graph, and time it."""
    started = time.perf_counter()
    await hnsw.build(scout._store.pool, corpus.model_id, scout._store.in_database.exact_rows)
    return {"graph_s": time.perf_counter() - started}


async def in_sqlite(corpus: Any, size: int, tenants: int) -> dict[str, Any]:
    """Measure SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'catalogue.db'}"
        async with opened(url) as scout:
            filled = await measure.publish_all(scout, corpus, size) if tenants == 1 else {}
        if tenants > 1:
            load.fill_sqlite(str(Path(folder) / "catalogue.db"), corpus, size, tenants)
        async with opened(url) as scout:
            row = await measure.searches(scout, corpus, tenants)
            row |= await measure.publications(scout, corpus, size, tenants)
        return {"load": machine()["load"], "engine": "sqlite", "tools": size, "tenants": tenants, **filled, **row}


def measured() -> list[dict[str, Any]]:
    """Return what earlier runs wrote: a run of some sizes keeps the rows of the others."""
    path = RESULTS / "scale.json"
    return json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []


def report(results: list[dict[str, Any]]) -> None:
    """Write what has been measured so far, so that a run that is stopped leaves its part."""
    columns = {
        "search p50 ms": "p50_ms",
        "p95 ms": "p95_ms",
        "first ms": "first_ms",
        "publish p50 ms": "publish_p50_ms",
        "index tools/s": "index_tools_per_s",
        "graph s": "graph_s",
        "recall@10": "recall_at_10",
        "top 10 in 50": "top_10_in_50",
        "same top 10": "same_answer",
        "load": "load",
    }
    body = [
        [f"{row['tools']:,}", f"{row['tenants']:,}", row["engine"]]
        + [_shown(name, row[name]) if name in row else "" for name in columns.values()]
        for row in results
    ]
    how = (corpora.__doc__ or "").split("\n\n", 1)[1].strip()
    about = {name: value for name, value in machine().items() if name != "load"}
    text = ["# Scale", "", f"`python -m benchmarks.scale`; {about}", "", how, "", _LEGEND, ""]
    text.append(markdown(["tools", "tenants", "store", *columns], body))
    save("scale", {"machine": machine(), "rows": results}, "\n".join(text))


_LEGEND = (
    "Searches are whole searches of `Scout.search_tools` by one client, the query's vector known; with many "
    "tenants, 50 of them ask in turn. *first* is the first search of a tenant, its loading included. *publish* is "
    "one changed server of up to 30 tools, its vectors included, until this process shows it. *index* is "
    "everything published from nothing, without embedding; *graph* is the HNSW index built after that. "
    "*recall@10* compares the graph's 10 nearest with the exact 10, *top 10 in 50* asks how many of the exact 10 "
    "are among the 50 that the scorer sees, *same top 10* compares whole answers. A tenant of up to 50,000 tools "
    "is searched in memory, exactly; *in the database* is what a larger one gets, forced at 15k. *load* is the "
    "machine's at the end of a row, two cores shared with other work; rows are from one day, not all from one run."
)


def _shown(name: str, value: float) -> str:
    if name in ("recall_at_10", "top_10_in_50", "same_answer"):
        return f"{value:.3f}"
    return f"{value:,.0f}" if name in ("index_tools_per_s", "graph_s") else f"{value:.1f}"


async def main(sizes: list[int], tenants: list[int]) -> None:
    """Measure each size with each number of tenants."""
    corpus = await corpora.read_corpus()
    server = PostgresServer(_OPTIONS)
    results = [row for row in measured() if row["tools"] not in sizes]
    try:
        server.start()
        databases = Databases(server.url)
        for size in sizes:
            for count in tenants:
                results += await in_postgres(databases, corpus, size, count)
                report(results)
                results.append(await in_sqlite(corpus, size, count))
                report(results)
        databases.close()
    finally:
        server.remove()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--tenants", type=int, nargs="+", default=TENANTS)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server is ended whoever ends this
    asyncio.run(main(list(given.sizes), list(given.tenants)))
