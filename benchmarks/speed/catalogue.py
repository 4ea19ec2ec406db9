"""Speed on the 14.7k catalogue: indexing, restart, memory, search, compared with FastMCP's BM25.

TOOLSCOUT_BENCH=... python -m benchmarks.speed.catalogue
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.data import bench_folder, machine, markdown, rows, save
from toolscout import Scout, Settings
from toolscout.discovery.search import Search
from toolscout.models import Query

STORE = Path("build/bench/speed.db")
QUERIES = 200

CHILD = """
import asyncio, json, resource, sys, time
started = time.perf_counter()
from toolscout import Scout
async def main():
    async with Scout.open(store=sys.argv[1]) as scout:
        answer = await scout.search_tools("list the open pull requests of a repository")
        first = time.perf_counter() - started
        for query in json.load(sys.stdin):
            await scout.search_tools(query)
    print(json.dumps({"first_answer_s": first, "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
asyncio.run(main())
"""

INDEX = """
import asyncio, json, resource, sys
from toolscout import Scout
async def main():
    async with Scout.open(store=sys.argv[1]) as scout:
        report = await scout.index_tools(sys.argv[2])
        print(json.dumps({"took_s": report.took_ms / 1000, "new": report.new, "unchanged": report.unchanged,
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
asyncio.run(main())
"""


def child(code: str, *arguments: str, given: str = "") -> dict[str, Any]:
    """Run Python code in a fresh process and return what it prints."""
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


async def search_times(queries: list[str]) -> dict[str, list[float]]:
    """Time whole searches, and the query's embedding alone."""
    settings = Settings(store=f"sqlite:///{STORE}", query_cache_size=0)
    async with Scout.open(settings=settings) as scout:
        for query in queries[:20]:
            await scout.search_tools(query)
        whole, embedding = [], []
        for query in queries:
            started = time.perf_counter()
            await scout.search_tools(query)
            whole.append((time.perf_counter() - started) * 1_000)
        for query in queries:
            started = time.perf_counter()
            await scout._embedder._inner.embed_queries([query])
            embedding.append((time.perf_counter() - started) * 1_000)
        return {"whole": whole, "embedding": embedding, "engine": await engine_times(scout, queries)}


async def engine_times(scout: Scout, queries: list[str]) -> list[float]:
    """Time the engine alone: understand, embed, candidates, rank; definitions and the answer's shape left out."""
    search = Search(store=scout._store, embedder=scout._embedder, settings=scout._settings)
    times = []
    for text in queries:
        started = time.perf_counter()
        await search.rank([Query(text=text)], scout.caller)
        times.append((time.perf_counter() - started) * 1_000)
    return times


def peer(tools: Path, queries: list[str]) -> list[float]:
    """Time FastMCP's engine in an environment of its own."""
    uv = next(path for path in (".tools/bin/uv", shutil.which("uv")) if path and Path(path).exists())
    script = str(Path(__file__).parent / "peer_fastmcp.py")
    command = [uv, "run", "--no-project", "--with", "fastmcp", "python", script, str(tools)]
    given = json.dumps(queries)
    result = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    times: list[float] = json.loads(result.stdout)
    return times


def main() -> None:
    """Measure and write the table."""
    tools = bench_folder() / "mcp_catalogue" / "tools.jsonl"
    asked = rows(bench_folder() / "livemcp_step" / "queries.jsonl") + rows(
        bench_folder() / "azure_mcp" / "queries.jsonl"
    )
    queries = [row["query"] for row in asked][:QUERIES]
    for path in STORE.parent.glob("speed.db*"):
        path.unlink()
    STORE.parent.mkdir(parents=True, exist_ok=True)
    store = f"sqlite:///{STORE}"
    cold = child(INDEX, store, str(tools))
    again = child(INDEX, store, str(tools))
    restart = child(CHILD, store, given=json.dumps(queries))
    times = asyncio.run(search_times(queries))
    other = peer(tools, queries[:50])
    p50, theirs = median(times["whole"]), median(other)
    figures = {
        "tools": cold["new"],
        "index_cold_tools_per_s": cold["new"] / cold["took_s"],
        "index_cold_memory_mb": cold["memory_mb"],
        "index_unchanged_s": again["took_s"],
        "restart_to_first_answer_s": restart["first_answer_s"],
        "serving_memory_mb": restart["memory_mb"],
        "search_p50_ms": p50,
        "search_p95_ms": quantiles(times["whole"], n=20)[18],
        "embedding_p50_ms": median(times["embedding"]),
        "fastmcp_bm25_p50_ms": theirs,
        "times_faster_than_fastmcp": theirs / p50,
        "engine_p50_ms": median(times["engine"]),
        "engine_times_faster_than_fastmcp": theirs / median(times["engine"]),
    }
    figures = {name: round(value, 3) for name, value in figures.items()}
    asks = {
        "index_cold_tools_per_s": ">= 250",
        "index_unchanged_s": "< 2",
        "restart_to_first_answer_s": "< 1.5",
        "serving_memory_mb": "< 350",
        "search_p50_ms": "<= 5",
        "engine_times_faster_than_fastmcp": ">= 15",
    }
    body = [[name, value, asks.get(name, "")] for name, value in figures.items()]
    text = [
        "# Speed on the catalogue of 14.7k tools",
        "",
        "`python -m benchmarks.speed.catalogue`; " + str(machine()),
        "",
    ]
    said = (
        "Whole searches, query embedding included, no cache. FastMCP's `_search` alone and our engine alone (embedding "
    )
    text += [said + "included; definitions and the answer's shape left out) are compared in the same run.", ""]
    text += [markdown(["figure", "measured", "asked"], body)]
    save("speed", {"machine": machine(), **figures}, "\n".join(text))


if __name__ == "__main__":
    main()
