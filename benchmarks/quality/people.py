"""Requests as people write them, over 50 real servers, and what default settings show for them.

    python -m benchmarks.quality.people

The set is `real_servers` of TOOLSCOUT_BENCH: 390 requests with the tools that serve them, 75 near misses (the product
is there, what is asked for is not) and 60 requests about something else. No request or tool of it was trained on. The
constants of the order and of the scores were fitted on it and on the six public sets, which are measured as well.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from statistics import median
from typing import Any

from benchmarks.data import SETS, bench_folder, machine, markdown, rows, save
from toolscout import Scout
from toolscout.models import answer_text
from toolscout.retrieval_metrics import LabelledQuery, QueryOutcome, read_queries, summarize
from toolscout.text import tokens_of

STYLES = ("agent", "user", "paraphrase", "multi", "typo", "lang")
FIGURES = ("ndcg@10", "shown@5", "empty", "strong_right")


async def ask(scout: Scout, queries: list[LabelledQuery]) -> tuple[list[QueryOutcome], list[int]]:
    """Answer every request with default settings. Return the outcomes and the tokens of the texts for a model."""
    outcomes, tokens = [], []
    for item in queries:
        started = time.perf_counter()
        answer = await scout.search_tools(item.query)
        took_ms = (time.perf_counter() - started) * 1_000
        fit = answer[0].fit if answer else None
        ids = tuple(match.tool.id for match in answer)
        outcomes.append(QueryOutcome(labelled=item, tool_ids=ids, took_ms=took_ms, fit=fit))
        tokens.append(tokens_of(len(answer_text(await scout.search_tools(item.query, limit=5), 2_000))))
    return outcomes, tokens


async def measure_people() -> tuple[dict[str, Any], dict[str, Any]]:
    """Measure `real_servers`, by style."""
    folder = bench_folder() / "real_servers"
    queries = read_queries(folder / "queries.jsonl")
    nothing = [
        LabelledQuery(id=row["id"], query=row["query"], gold=frozenset(), style=row["kind"])
        for row in rows(folder / "nothing_fits.jsonl")
    ]
    async with Scout.open(tools=folder / "tools.jsonl") as scout:
        outcomes, tokens = await ask(scout, [*queries, *nothing])
        count = (await scout.overview()).total
    groups: dict[str, list[QueryOutcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.labelled.style].append(outcome)
    groups["all"] = [outcome for outcome in outcomes if outcome.labelled.gold]
    figures = {
        name: {"strict": summarize(group, count), "lenient": summarize(group, count, lenient=True)}
        for name, group in groups.items()
    }
    facts = {
        "strong_right, near misses and foreign requests included": summarize(outcomes, count).get("strong_right"),
        "tokens of an answer, median": median(tokens[: len(queries)]),
    }
    return figures, facts


async def measure_public() -> dict[str, Any]:
    """Measure the six public sets."""
    figures = {}
    for name in SETS:
        folder = bench_folder() / name
        async with Scout.open(tools=folder / "tools.jsonl") as scout:
            outcomes = []
            for item in read_queries(folder / "queries.jsonl"):
                answer = await scout.search_tools(item.query)
                ids, fit = tuple(match.tool.id for match in answer), answer[0].fit if answer else None
                outcomes.append(QueryOutcome(labelled=item, tool_ids=ids, took_ms=0.0, fit=fit))
            figures[name] = summarize(outcomes, (await scout.overview()).total)
        print(name, figures[name], flush=True)
    return figures


async def main() -> None:
    """Measure and write the tables."""
    people, facts = await measure_people()
    print(people["all"], facts, flush=True)
    public = await measure_public()
    table = [
        [
            name,
            people[name]["strict"]["queries"],
            *(people[name]["strict"].get(figure, "") for figure in FIGURES),
            people[name]["lenient"]["shown@5"],
        ]
        for name in (*STYLES, "all")
    ]
    lines = [
        "# Requests as people write them",
        "",
        "1,229 tools of 50 real servers, of which the screen withholds four, with default settings. `shown@5`",
        "counts the tools that a request was written for; the last column also counts those that serve as well.",
        "",
        markdown(["style", "requests", *FIGURES, "shown@5, lenient"], table),
        "",
        "Requests that nothing fits, without a strong or likely hit: "
        + ", ".join(f"{kind} {people[kind]['strict']['declined']:.2f}" for kind in ("near", "foreign"))
        + ".",
        "",
        *(f"- {name}: {value}" for name, value in facts.items()),
        "",
        "The six public sets, all requests, default settings:",
        "",
        markdown(
            ["set", "ndcg@10", "recall@5", "shown@5", "empty", "strong_right"],
            [
                [name, *(row.get(figure, "") for figure in ("ndcg@10", "recall@5", "shown@5", "empty", "strong_right"))]
                for name, row in public.items()
            ],
        ),
        "",
        f"Mean nDCG@10: {sum(row['ndcg@10'] for row in public.values()) / len(public):.4f}.",
    ]
    save("people", {"machine": machine(), "people": people, "facts": facts, "public": public}, "\n".join(lines))


if __name__ == "__main__":
    asyncio.run(main())
