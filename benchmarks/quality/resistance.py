"""Resistance: 1 % of hostile tools on untrusted servers, made with our model and with requests of the same kind.

    TOOLSCOUT_BENCH=... python -m benchmarks.quality.resistance [--queries 200] [--sets azure_mcp livemcp_step]

The catalogue is a set's own tools and the distractors of mcp_catalogue. The attacker knows the catalogue, our model and
one half of the requests. The other half is measured, and then the halves are exchanged. The worst cases come last: an
attacker who knows the requests that are measured, and one who aims every hostile tool at a single tool. Each case is
repeated with the hostile servers marked as trusted, to show what the limits for untrusted servers achieve.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import bench_folder, machine, markdown, rows, save
from benchmarks.quality.distractors import with_distractors
from benchmarks.quality.figures import some
from benchmarks.quality.hostile import KINDS, clusters, copied, optimised, orders, stuffed
from toolscout import Scout
from toolscout.models import Document
from toolscout.retrieval_metrics import LabelledQuery, read_queries, recall
from toolscout.sources import as_source

SETS = ("azure_mcp", "livemcp_step")
QUERIES = 200
SHARE = 0.01
SERVERS = 12
BUILD = Path("build/bench")


class Attack:
    """Makes hostile tools against a set of requests; what a kind has made once is kept."""

    def __init__(self, queries: list[LabelledQuery], tools: dict[str, dict[str, Any]], scout: Scout) -> None:
        """Embed the requests, as an attacker with our model would."""
        self.queries, self.tools = queries, tools
        self.inner = scout._embedder._inner
        self.targets = np.stack([self.inner._embed_one(item.query, 128, 1) for item in queries])
        self.made: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def embed(self, documents: list[Document]) -> Any:
        """Embed documents as indexing does."""
        template, most = self.inner.manifest.document_template, self.inner.manifest.max_tokens
        return np.stack([self.inner._embed_one(item.text(template), most, 1) for item in documents])

    def make(self, kind: str, count: int) -> list[dict[str, Any]]:
        """Make so many tools of a kind, spread over all requests."""
        if kind == "mixed":
            parts = [self.make(name, math.ceil(count / len(KINDS))) for name in KINDS]
            return [tool for group in zip(*parts, strict=True) for tool in group][:count]
        if (kind, count) not in self.made:
            self.made[kind, count] = list(self._make(kind, count))
        return self.made[kind, count]

    def _make(self, kind: str, count: int) -> Any:
        if kind == "copies":
            popular = Counter(gold for item in self.queries for gold in item.gold if gold in self.tools)
            names = [name for name, _ in popular.most_common()]
            return [copied(self.tools[names[n % len(names)]], n) for n in range(count)]
        groups = clusters(self.targets, count)
        made = []
        for number in range(count):
            group = groups[number % len(groups)]
            said = [self.queries[place].query for place in group]
            if kind == "optimised":
                made.append(optimised(said, self.targets[group], self.embed, number))
            else:
                made.append((stuffed if kind == "stuffed" else orders)(said, number))
        return made


async def outcome(scout: Scout, queries: list[LabelledQuery]) -> dict[str, Any]:
    """Search every request and count what the hostile servers hold of the first five."""
    gained, held, first, worst = [], [], 0, (-1, "", [])
    for item in queries:
        answer = await scout.search_tools(item.query, threshold=-1.0)
        strange = [match.tool.server.startswith("hostile") for match in answer][:5]
        gained.append(recall([match.tool.id for match in answer], item.gold, 5))
        held.append(sum(strange))
        first += strange[:1] == [True]
        if sum(strange) > worst[0]:
            worst = (sum(strange), item.query, [match.tool.key for match in answer][:5])
    return {
        "queries": len(queries),
        "recall@5": float(np.mean(gained)),
        "at_most_2": float(np.mean([count <= 2 for count in held])),
        "mean_held": float(np.mean(held)),
        "first": first / len(queries),
        "worst": {"held": worst[0], "query": worst[1], "first_five": worst[2]},
    }


async def attacked(
    scout: Scout, queries: list[LabelledQuery], hostile: list[dict[str, Any]], servers: int, *, trusted: bool
) -> dict[str, Any]:
    """Put hostile tools on so many servers in place of the attack before, and measure."""
    await place(scout, hostile, servers, trusted=trusted)
    return await outcome(scout, queries)


async def place(scout: Scout, hostile: list[dict[str, Any]], servers: int, *, trusted: bool = False) -> None:
    """Replace what the hostile servers list."""
    given = [hostile[number::servers] if number < servers else [] for number in range(SERVERS)]
    sources = [
        as_source(f"hostile-{number}", tools, trusted=trusted, timeout_s=10.0) for number, tools in enumerate(given)
    ]
    await scout.index(sources)


async def measure_set(name: str, most: int) -> dict[str, Any]:
    """Measure every attack on one set."""
    folder = bench_folder()
    tools, queries = rows(folder / name / "tools.jsonl"), read_queries(folder / name / "queries.jsonl")
    queries = some(queries, most)
    many = with_distractors(tools, rows(folder / "mcp_catalogue" / "tools.jsonl"), 10**9)
    count, by_id = math.ceil(len(many) * SHARE), {tool["id"]: tool for tool in tools}
    async with Scout.open(store=await fresh_store(name, many)) as scout:
        await scout.warm()
        clean = await outcome(scout, queries)
        halves = [queries[::2], queries[1::2]]
        knowing = [Attack(half, by_id, scout) for half in halves]
        both: dict[str, Any] = {}
        for kind, servers in (*((kind, SERVERS) for kind in KINDS), ("mixed", SERVERS), ("mixed", 1)):
            parts: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
            for attack, measured in zip(knowing, reversed(halves), strict=True):
                for trusted in parts:
                    found = await attacked(scout, measured, attack.make(kind, count), servers, trusted=trusted)
                    parts[trusted].append(found)
            label = f"{kind}, {servers} server{'s' * (servers > 1)}"
            both[label] = {"clean": clean, "bounded": joined(parts[False]), "unbounded": joined(parts[True])}
            print(name, label, both[label]["bounded"], flush=True)
        target, _ = Counter(gold for item in queries for gold in item.gold).most_common(1)[0]
        aimed = [item for item in queries if target in item.gold]
        for label, known in (("knows the very requests", queries), (f"all aimed at `{target}`", aimed)):
            hostile = Attack(known, by_id, scout).make("mixed", count)
            await place(scout, [], 1)
            both[f"worst: mixed, {label} ({len(known)})"] = {
                "clean": await outcome(scout, known),
                "bounded": await attacked(scout, known, hostile, SERVERS, trusted=False),
                "unbounded": await attacked(scout, known, hostile, SERVERS, trusted=True),
            }
    return {"tools": len(many), "hostile": count, "queries": len(queries), "clean": clean, "attacks": both}


async def fresh_store(name: str, many: list[dict[str, Any]]) -> str:
    """Return a store with the set and its distractors and nothing hostile from an earlier run."""
    base, own = BUILD / f"{name}-many.db", BUILD / f"{name}-hostile.db"
    async with Scout.open(store=f"sqlite:///{base}") as scout:
        await scout.index_tools(many)
    for old in (own, own.with_name(f"{own.name}-wal"), own.with_name(f"{own.name}-shm")):
        old.unlink(missing_ok=True)
    shutil.copy(base, own)
    return f"sqlite:///{own}"


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Average the halves; the worst request of both is kept."""
    worst = max((part["worst"] for part in parts), key=lambda found: found["held"])
    names = ("recall@5", "at_most_2", "mean_held", "first")
    total = sum(part["queries"] for part in parts)
    return {name: sum(part[name] * part["queries"] for part in parts) / total for name in names} | {
        "queries": total,
        "worst": worst,
    }


def report(results: dict[str, Any]) -> None:
    """Write the tables."""
    text = ["# Resistance", "", "`python -m benchmarks.quality.resistance`; " + str(machine()), ""]
    text += [(__doc__ or "").split("\n\n")[-1].strip(), ""]
    head = ["attack", "recall@5", "change", "at most 2 of 5", "first", "recall@5 unbounded", "at most 2 unbounded"]
    for name, result in results.items():
        clean = result["clean"]["recall@5"]
        text += [
            f"## {name}: {result['hostile']} hostile among {result['tools']:,} tools, {result['queries']} requests",
            "",
        ]
        body = [["none", f"{clean:.3f}", "", "", "", "", ""]]
        for label, found in result["attacks"].items():
            before, bounded, free = found["clean"]["recall@5"], found["bounded"], found["unbounded"]
            body.append(
                [label, f"{bounded['recall@5']:.3f}", f"{bounded['recall@5'] - before:+.3f}"]
                + [f"{bounded['at_most_2']:.1%}", f"{bounded['first']:.1%}", f"{free['recall@5']:.3f}"]
                + [f"{free['at_most_2']:.1%}"]
            )
        text += [markdown(head, body), ""]
        label, worst = max(result["attacks"].items(), key=lambda pair: pair[1]["bounded"]["worst"]["held"])
        shown = worst["bounded"]["worst"]
        text += [f"The worst answer ({label}), to {shown['query'][:160]!r}:", ""]
        text += [f"{place}. `{key}`" for place, key in enumerate(shown["first_five"], start=1)] + [""]
    text += ["*first*: requests whose first hit is hostile. *unbounded*: the same tools on servers marked trusted."]
    save("resistance", {"machine": machine(), "sets": results}, "\n".join(text))


async def main(names: list[str], most: int) -> None:
    """Measure the sets and report."""
    BUILD.mkdir(parents=True, exist_ok=True)
    report({name: await measure_set(name, most) for name in names})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    options = parser.parse_args()
    asyncio.run(main(options.sets, options.queries))
