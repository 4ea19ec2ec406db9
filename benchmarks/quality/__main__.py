"""Retrieval quality of any ranker, ours or another project's, on any folder of tools.jsonl and queries.jsonl.

    python -m benchmarks.quality FOLDER... [--ranker R]... [--queries N] [--distractors FOLDER] [--name NAME]

Without a folder, the six development sets of TOOLSCOUT_BENCH are measured, and the result is quality.md.
The first ranker is compared with each of the others, request by request.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.data import SETS, bench_folder, machine, rows, save
from benchmarks.quality.distractors import with_distractors
from benchmarks.quality.engines import OURS, THEIRS, Missing, ask, embed_once
from benchmarks.quality.figures import difference, figures_of, sliced, some
from benchmarks.quality.peers import SLOW
from benchmarks.quality.plots import draw
from benchmarks.quality.report import written
from toolscout.retrieval_metrics import LabelledQuery, QueryOutcome, read_queries

SIZED = ("hybrid", "rrf", "fastmcp")
"""The rankers whose loss among distractors is measured: the others would take hours."""
ALL = 10**9


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure: the first ranker on `queries` requests a set, all else on `others`."""

    folders: list[Path]
    rankers: list[str]
    queries: int
    others: int
    distractors: Path | None
    sizes: list[int]


@dataclass(kw_only=True)
class Measured:
    """All figures: of the first ranker on all requests, then by ranker and set on the requests that all are given."""

    lead: dict[str, Any] = field(default_factory=dict)
    rankers: dict[str, dict[str, Any]] = field(default_factory=dict)
    against: dict[str, dict[str, Any]] = field(default_factory=dict)
    slices: dict[str, dict[str, Any]] = field(default_factory=dict)
    sizes: dict[str, dict[str, Any]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


async def try_to_ask(
    measured: Measured, ranker: str, tools: list[dict[str, Any]], queries: list[LabelledQuery], store: str
) -> list[QueryOutcome] | None:
    """Ask a ranker; one that cannot answer is noted, never left out in silence."""
    try:
        found, measured.versions[ranker] = await ask(ranker, tools, queries, store)
    except Missing as reason:
        measured.missing.append(f"{ranker} on {store}: {reason}")
        return None
    return found


async def measure(plan: Plan) -> Measured:
    """Measure every set with every ranker, then among distractors."""
    measured, pooled = Measured(), dict[str, list[QueryOutcome]]()
    pool = rows(plan.distractors / "tools.jsonl") if plan.distractors else []
    for folder in plan.folders:
        name, tools = folder.name, rows(folder / "tools.jsonl")
        labelled = read_queries(folder / "queries.jsonl")
        by_id = {str(tool.get("id") or f"{tool.get('server') or 'local'}__{tool['name']}"): tool for tool in tools}
        asked = some(labelled, plan.queries)
        shared = some(asked, plan.others)
        for ranker in plan.rankers:
            leads = ranker == plan.rankers[0]
            queries = asked if leads else some(shared, SLOW.get(ranker, ALL))
            if (found := await try_to_ask(measured, ranker, tools, queries, name)) is None:
                continue
            if leads:
                measured.lead[name] = figures_of(found, len(tools))
                measured.slices.setdefault(f"{ranker}, all requests", {})[name] = sliced(found, by_id)
                pooled.setdefault("lead", []).extend(_under(name, item) for item in found)
                first, ids = found, {item.id for item in shared}
                found = [item for item in found if item.labelled.id in ids]
            else:
                measured.against.setdefault(ranker, {})[name] = difference(first, found)
                pooled.setdefault(ranker, []).extend(_under(name, item) for item in found)
            measured.rankers.setdefault(ranker, {})[name] = figures_of(found, len(tools))
            measured.slices.setdefault(ranker, {})[name] = sliced(found, by_id)
            print(name, ranker, measured.rankers[ranker][name], flush=True)
        await among_distractors(measured, plan, name, tools, labelled, pool)
    for ranker in (ranker for ranker in plan.rankers[1:] if ranker in pooled):
        measured.against[ranker]["all"] = difference(pooled["lead"], pooled[ranker])
    return measured


def _under(name: str, item: QueryOutcome) -> QueryOutcome:
    labelled = LabelledQuery(id=f"{name} {item.labelled.id}", query=item.labelled.query, gold=item.labelled.gold)
    return QueryOutcome(labelled=labelled, tool_ids=item.tool_ids, took_ms=item.took_ms)


async def among_distractors(
    measured: Measured,
    plan: Plan,
    name: str,
    tools: list[dict[str, Any]],
    labelled: list[LabelledQuery],
    pool: list[dict[str, Any]],
) -> None:
    """Measure the same requests with more and more of other people's tools around."""
    if not pool:
        return
    queries = some(labelled, plan.others)
    if any(plan.sizes):
        await embed_once(pool, [f"{name}-{size}" for size in plan.sizes if size])
    for size in plan.sizes:
        many = with_distractors(tools, pool, size)
        label = "own tools" if not size else "all" if size >= len(pool) else f"+ {size:,}"
        for ranker in (ranker for ranker in plan.rankers if ranker in SIZED):
            found = await try_to_ask(measured, ranker, many, queries, f"{name}-{size}" if size else name)
            if found is not None:
                figures = measured.sizes.setdefault(ranker, {}).setdefault(name, {})
                figures[label] = figures_of(found, len(many))
                print(name, ranker, label, figures[label]["ndcg@10"], flush=True)


def planned(arguments: list[str] | None = None) -> tuple[Plan, str]:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=str(__doc__).splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="tools.jsonl and queries.jsonl")
    parser.add_argument("--ranker", action="append", choices=[*OURS, *THEIRS], help="repeatable; default: all")
    parser.add_argument("--queries", type=int, default=ALL, help="requests a set for the first ranker")
    parser.add_argument("--others", type=int, default=200, help="requests a set for all others and for distractors")
    parser.add_argument("--distractors", type=Path, help="a folder whose tools are put around the set's own")
    parser.add_argument("--sizes", type=int, nargs="*", default=[0, 4_000, ALL], help="how many distractors")
    parser.add_argument("--name", help="of the files in benchmarks/results")
    given = parser.parse_args(arguments)
    folders, distractors = given.folders, given.distractors
    if not folders:
        folders = [bench_folder() / name for name in SETS]
        distractors = distractors or bench_folder() / "mcp_catalogue"
    name = given.name or ("-".join(folder.name for folder in folders) if given.folders else "quality")
    plan = Plan(
        folders=folders,
        rankers=given.ranker or [*OURS, *THEIRS],
        queries=given.queries,
        others=min(given.others, given.queries),
        distractors=distractors,
        sizes=given.sizes,
    )
    return plan, name


async def main(arguments: list[str] | None = None) -> None:
    """Measure and write the tables and the plots."""
    plan, name = planned(arguments)
    measured = await measure(plan)
    value = {"machine": machine(), "ranker": plan.rankers[0], **vars(measured)}
    save(name, value, written(name, plan.rankers[0], measured))
    draw(name, measured)


if __name__ == "__main__":
    asyncio.run(main())
