"""Retrieval quality on the six development sets, by lexical overlap, and among 14.7k distractors.

TOOLSCOUT_BENCH=... python -m benchmarks.quality.sets
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

from benchmarks.data import SETS, bench_folder, machine, markdown, rows, save
from toolscout import Scout
from toolscout.cli.metrics import Labelled, Outcome, ndcg, read_queries, recall, summarize
from toolscout.words import query_terms, terms

BEST_SINGLE = {
    "azure_mcp": 0.942,
    "livemcp_step": 0.786,
    "metatool_single": 0.723,
    "stabletoolbench": 0.747,
    "sealtools": 0.939,
    "bfcl_synth": 0.856,
}
"""The best of BM25, BM25F, MiniLM, RRF and weighted sums, with and without clauses, on each set."""
RANKERS = ("hybrid", "semantic", "keyword", "fuzzy", "boosted")
OVERLAPS = ((0.0, 0.34, "few shared words"), (0.34, 0.67, "some"), (0.67, 1.01, "most"))
BUILD = Path("build/bench")


async def outcomes(tools: list[dict[str, Any]], queries: list[Labelled], ranker: str, store: str) -> list[Outcome]:
    """Answer every query with a user's default settings, the threshold aside."""
    async with Scout.open(store=store) as scout:
        await scout.index_tools(tools)
        await scout.warm()
        found = []
        for item in queries:
            answer = await scout.search_tools(item.query, ranker=ranker, threshold=-1.0)
            keys = tuple(match.tool.id for match in answer)
            found.append(Outcome(labelled=item, found=keys, took_ms=answer.metadata.took_ms))
        return found


def overlap(item: Labelled, tools: dict[str, dict[str, Any]]) -> float:
    """Return the share of the query's words that the best gold tool's name and description hold."""
    asked = set(query_terms(item.query))
    shares = []
    for gold in item.gold & tools.keys():
        own = set(terms(f"{tools[gold]['name']} {tools[gold].get('description') or ''}"))
        shares.append(len(asked & own) / max(len(asked), 1))
    return max(shares, default=0.0)


async def among_many(name: str, pool: list[dict[str, Any]]) -> str:
    """Return a store that holds the catalogue's vectors already, so that they are embedded once for all sets."""
    base, own = BUILD / "catalogue.db", BUILD / f"{name}-many.db"
    if not base.exists():
        async with Scout.open(store=f"sqlite:///{base}") as scout:
            await scout.index_tools(pool)
    if not own.exists():
        shutil.copy(base, own)
    return f"sqlite:///{own}"


def with_distractors(tools: list[dict[str, Any]], pool: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the catalogue, less what has the id or the text of one of the set's own tools."""
    ids = {tool["id"] for tool in tools}
    texts = {(tool["name"], tool.get("description")) for tool in tools}
    names = {(tool.get("server") or "", tool["name"]) for tool in tools}
    extra = [
        tool
        for tool in pool
        if tool["id"] not in ids
        and (tool["name"], tool.get("description")) not in texts
        and (tool.get("server") or "", tool["name"]) not in names
    ]
    return [*tools, *extra]


async def measure() -> None:
    """Measure everything and write the tables."""
    folder = bench_folder()
    BUILD.mkdir(parents=True, exist_ok=True)
    pool = rows(folder / "mcp_catalogue" / "tools.jsonl")
    by_ranker: dict[str, dict[str, Any]] = {ranker: {} for ranker in RANKERS}
    slices: dict[str, dict[str, list[float]]] = {}
    distracted: dict[str, Any] = {}
    for name in SETS:
        tools, queries = rows(folder / name / "tools.jsonl"), read_queries(folder / name / "queries.jsonl")
        by_id = {tool["id"]: tool for tool in tools}
        store = f"sqlite:///{BUILD / name}.db"
        for ranker in RANKERS:
            found = await outcomes(tools, queries if ranker == "hybrid" else queries[:400], ranker, store)
            by_ranker[ranker][name] = summarize(found, len(tools))
            if ranker == "hybrid":
                for outcome in found:
                    share = overlap(outcome.labelled, by_id)
                    label = next(label for low, high, label in OVERLAPS if low <= share < high)
                    gained = ndcg(outcome.found, outcome.labelled.gold, 10)
                    slices.setdefault(name, {}).setdefault(label, []).append(gained)
        many = with_distractors(tools, pool)
        found = await outcomes(many, queries[:400], "hybrid", await among_many(name, pool))
        distracted[name] = summarize(found, len(many))
        distracted[name]["recall@5"] = sum(recall(o.found, o.labelled.gold, 5) for o in found) / len(found)
        print(name, by_ranker["hybrid"][name], "with distractors", distracted[name]["ndcg@10"], flush=True)
    report(by_ranker, slices, distracted)


def report(by_ranker: dict[str, Any], slices: dict[str, dict[str, list[float]]], distracted: dict[str, Any]) -> None:
    """Write the result files."""
    hybrid = by_ranker["hybrid"]
    mean = sum(hybrid[name]["ndcg@10"] for name in SETS) / len(SETS)
    body = []
    for name in SETS:
        figures = hybrid[name]
        gap = figures["ndcg@10"] - BEST_SINGLE[name]
        body.append(
            [name, figures["tools"], figures["queries"], f"**{figures['ndcg@10']:.3f}**", f"{BEST_SINGLE[name]:.3f}"]
            + [f"{gap:+.3f}", f"{figures['recall@1']:.3f}", f"{figures['recall@5']:.3f}", f"{figures['mrr']:.3f}"]
        )
    body.append(["mean", "", "", f"**{mean:.3f}**", f"{sum(BEST_SINGLE.values()) / 6:.3f}", "", "", "", ""])
    head = ["set", "tools", "queries", "nDCG@10", "best single", "gap", "recall@1", "recall@5", "mrr"]
    text = ["# Retrieval quality", "", "`python -m benchmarks.quality.sets`; " + str(machine()), ""]
    text += ["`hybrid` on the six development sets, default settings, no threshold:", "", markdown(head, body), ""]
    body = [[name] + [f"{by_ranker[ranker][name]['ndcg@10']:.3f}" for ranker in RANKERS] for name in SETS]
    text += ["nDCG@10 by ranker (the documented ones on at most 400 queries a set):", ""]
    text += [markdown(["set", *RANKERS], body), ""]
    labels = [label for _, _, label in OVERLAPS]
    body = []
    for name in SETS:
        cells = [slices[name].get(label, []) for label in labels]
        body.append([name] + [f"{sum(cell) / len(cell):.3f} ({len(cell)})" if cell else "-" for cell in cells])
    text += ["nDCG@10 by how many of the query's words the right tool's name and description hold (queries):", ""]
    text += [markdown(["set", *labels], body), ""]
    body = [
        [name, distracted[name]["tools"], f"{distracted[name]['ndcg@10']:.3f}", f"{distracted[name]['recall@5']:.3f}"]
        + [f"{distracted[name]['ndcg@10'] - hybrid[name]['ndcg@10']:+.3f}"]
        for name in SETS
    ]
    text += ["With the 14.7k catalogue as distractors (at most 400 queries; equal ids and texts dropped):", ""]
    text += [markdown(["set", "tools", "nDCG@10", "recall@5", "change"], body)]
    value = {
        "machine": machine(),
        "mean_ndcg@10": round(mean, 4),
        "rankers": by_ranker,
        "overlap": {n: {k: round(sum(v) / len(v), 4) for k, v in s.items()} for n, s in slices.items()},
        "distractors": distracted,
    }
    save("quality", value, "\n".join(text))


if __name__ == "__main__":
    asyncio.run(measure())
