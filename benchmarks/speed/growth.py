"""How search latency grows, from 1,000 to 1,000,000 tools.

    TOOLSCOUT_BENCH=... python -m benchmarks.speed.growth [--most 1000000]

The first tools are real. The others are copies under other keys. In each copy a fifth of the words is replaced by words
of other tools, and noise is added to the vector (cosine about .9 with the original).
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import replace
from statistics import median, quantiles
from typing import Any

import numpy as np

from benchmarks.data import RESULTS, bench_folder, machine, markdown, rows, save
from toolscout import Scout, Settings
from toolscout.models import Scope
from toolscout.storage.index.postings import PACKED, InvertedIndex
from toolscout.storage.index.segment import Segment
from toolscout.storage.index.vectors import VectorIndex

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
NOISE = 0.0247


def grown(base: dict[str, Any], size: int) -> Segment:
    """Build a generation of the size from the base's columns."""
    random = np.random.default_rng(0)
    count = len(base["facets"])
    rows_of = np.arange(size) % count
    vocabulary = np.concatenate([np.frombuffer(item, dtype=PACKED)["term"] for item in base["packed"]])
    facets, packed = [], []
    for number, row in enumerate(rows_of.tolist()):
        copy = number // count
        item = base["facets"][row]
        words = base["packed"][row]
        if copy:
            item = replace(item, key=f"{item.key}-{copy}")
            terms = np.frombuffer(words, dtype=PACKED).copy()
            changed = random.random(len(terms)) < 0.2
            terms["term"][changed] = random.choice(vocabulary, int(changed.sum()))
            words = terms.tobytes()
        facets.append(item)
        packed.append(words)
    matrix = base["matrix"][rows_of]
    if size > count:
        matrix[count:] += random.standard_normal((size - count, matrix.shape[1]), dtype=np.float32) * NOISE
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    order = sorted(range(size), key=lambda i: facets[i].key)
    return Segment(
        scope=Scope(),
        generation=1,
        model_id=base["model_id"],
        facets=[facets[i] for i in order],
        definitions=[base["definitions"][rows_of[i]] for i in order],
        words=InvertedIndex.from_packed([packed[i] for i in order]),
        vectors=VectorIndex(matrix[order], exact_rows=Settings().exact_rows),
    )


async def measure(most: int) -> None:
    """Measure each size and draw the curve."""
    queries = [row["query"] for row in rows(bench_folder() / "livemcp_step" / "queries.jsonl")]
    queries += [row["query"] for row in rows(bench_folder() / "azure_mcp" / "queries.jsonl")][:124]
    settings = Settings(store="sqlite:///build/bench/speed.db", query_cache_size=0)
    results = []
    async with Scout.open(settings=settings) as scout:
        await scout.index_tools(bench_folder() / "mcp_catalogue" / "tools.jsonl")
        base = load_base(scout)
        for size in (size for size in SIZES if size <= most):
            started = time.perf_counter()
            segment = grown(base, size)
            built = time.perf_counter() - started
            scout._store.segments.put(segment)
            for query in queries[:20]:
                await scout.search_tools(query)
            times = []
            for query in queries:
                started = time.perf_counter()
                await scout.search_tools(query)
                times.append((time.perf_counter() - started) * 1_000)
            p95 = quantiles(times, n=20)[18]
            exact = segment.vectors.exact
            row = {"tools": size, "p50_ms": median(times), "p95_ms": p95, "exact": exact, "built_s": built}
            results.append(row)
            report(results)


def report(results: list[dict[str, Any]]) -> None:
    """Write what has been measured so far, so that a run that is stopped leaves its part."""
    body = [
        [
            f"{row['tools']:,}",
            f"{row['p50_ms']:.2f}",
            f"{row['p95_ms']:.2f}",
            "exact" if row["exact"] else "codes",
            f"{row['built_s']:.0f}",
        ]
        for row in results
    ]
    how = (__doc__ or "").split("\n\n")[-1]
    text = ["# Growth", "", "`python -m benchmarks.speed.growth`; " + str(machine()), "", how, ""]
    text += [markdown(["tools", "search p50 ms", "p95 ms", "vectors", "built in s"], body), "", "![growth](growth.png)"]
    save("growth", {"machine": machine(), "sizes": results}, "\n".join(text))
    draw(results)


def load_base(scout: Scout) -> dict[str, Any]:
    """Take the columns of the published catalogue."""
    segment = scout._store.segments.snapshot(Scope()).segments[0]
    db = scout._store._connection
    packed = dict(db.execute("SELECT key, terms FROM tools").fetchall())
    return {
        "facets": list(segment.facets),
        "definitions": list(segment.definitions),
        "packed": [packed[item.key] for item in segment.facets],
        "matrix": segment.vectors.matrix,
        "model_id": segment.model_id,
    }


def draw(results: list[dict[str, Any]]) -> None:
    """Draw latency against size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    sizes = [row["tools"] for row in results]
    axes.plot(sizes, [row["p50_ms"] for row in results], marker="o", label="p50")
    axes.plot(sizes, [row["p95_ms"] for row in results], marker=".", linestyle="--", label="p95")
    axes.axvline(Settings().exact_rows, color="grey", linewidth=0.8)
    axes.annotate("exact | codes", (Settings().exact_rows, axes.get_ylim()[1]), ha="center", va="bottom", fontsize=8)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("tools in the catalogue")
    axes.set_ylabel("one search, ms (embedding included)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "growth.png", dpi=130)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=SIZES[-1])
    asyncio.run(measure(parser.parse_args().most))
