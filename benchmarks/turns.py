"""Measures `discover_tools`: latency, size, how often the right tool is chosen, and what `messages` adds.

TOOLSCOUT_BENCH=... python -m benchmarks.turns
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median, quantiles
from typing import Any

from benchmarks.data import bench_folder, machine, markdown, rows, save
from toolscout import Scout, Settings
from toolscout.text import count_tokens

CATALOGUE = 2_000
TURNS = 200
WARM = 20
PAIRS = 400
VAGUE = ("do that again", "and the same for the other one", "try it once more, please", "yes, go ahead")
ASKED = {"turn_p50_ms": "< 8", "smaller_mean": ">= .9", "smaller_worst": ">= .9", "azure_right_among_8": ">= .97"}

Couple = tuple[dict[str, Any], dict[str, Any]]


def said(*texts: str) -> list[dict[str, str]]:
    """Write a user's messages."""
    return [{"role": "user", "content": text} for text in texts]


def asked(name: str) -> list[dict[str, Any]]:
    """Read the requests of a labelled set."""
    return rows(bench_folder() / name / "queries.jsonl")


async def speed(queries: Sequence[str]) -> dict[str, float]:
    """Time whole turns over some thousand tools: the request is new each time, the messages before it are not."""
    tools = rows(bench_folder() / "mcp_catalogue" / "tools.jsonl")[:CATALOGUE]
    figures: dict[str, float] = {"tools": len(tools)}
    for label, earlier in (("turn", 0), ("turn_with_messages", 2)):
        times, work = [], []
        async with Scout.open(tools=tools, settings=Settings(store="memory:")) as scout:
            await scout.warm()
            for number, query in enumerate(queries):
                messages = said(*queries[max(number - earlier, 0) : number])
                started, worked = time.perf_counter(), time.process_time()
                found = await scout.discover_tools(query, messages=messages)
                found.openai_tools()
                times.append((time.perf_counter() - started) * 1_000)
                work.append((time.process_time() - worked) * 1_000)
        figures[f"{label}_p50_ms"] = median(times[WARM:])
        figures[f"{label}_p95_ms"] = quantiles(times[WARM:], n=20)[18]
        figures[f"{label}_cpu_p50_ms"] = median(work[WARM:])
    return figures


async def size(queries: Sequence[str]) -> dict[str, float]:
    """Count the definitions of a turn, as either API is sent them, against those of all tools of the real servers."""
    path = bench_folder() / "real_servers" / "tools.jsonl"
    async with Scout.open(tools=path, settings=Settings(store="memory:", discovery="off")) as scout:
        everything = await scout.discover_tools("everything")
    openai, anthropic = count_tokens(everything.openai_tools()), count_tokens(everything.anthropic_tools())
    smaller, chosen = [], []
    async with Scout.open(tools=path, store="memory:") as scout:
        for query in queries:
            found = await scout.discover_tools(query)
            chosen.append(len(found))
            smaller.append(1 - count_tokens(found.openai_tools()) / openai)
            smaller.append(1 - count_tokens(found.anthropic_tools()) / anthropic)
    return {
        "all_tools": len(everything),
        "all_tokens": openai,
        "tools_in_a_turn_mean": fmean(chosen),
        "smaller_mean": fmean(smaller),
        "smaller_worst": min(smaller),
    }


async def has(scout: Scout, query: str, gold: Sequence[str], *before: str) -> bool:
    """Say whether the right tools are in the turn."""
    found = await scout.discover_tools(query, messages=said(*before))
    return set(gold) <= {item.tool.id for item in found}


async def follow_up(scout: Scout, couples: Sequence[Couple]) -> dict[str, float]:
    """Ask second requests with and without the first: does the second's tool stay, does the first's come along?"""
    figures = {}
    for way, told in (("alone", False), ("with messages", True)):
        own, earlier = [], []
        for first, second in couples:
            before = [first["query"]] if told else []
            own.append(await has(scout, second["query"], second["gold"], *before))
            earlier.append(await has(scout, second["query"], first["gold"], *before))
        figures[f"{way}: its own tool"] = fmean(own)
        figures[f"{way}: the earlier tool"] = fmean(earlier)
    return figures


def couples(servers: dict[str, str]) -> dict[str, list[Couple]]:
    """Make conversations of two requests: of another subject, about the same server, and too vague to stand alone."""
    queries, chance = asked("azure_mcp"), random.Random(0)
    drawn = [tuple(chance.sample(queries, 2)) for _ in range(60 * PAIRS)]
    other = [couple for couple in drawn if couple[0]["gold"] != couple[1]["gold"]]
    near = [couple for couple in other if servers[couple[0]["gold"][0]] == servers[couple[1]["gold"][0]]]
    vague = [(row, {"query": VAGUE[place % len(VAGUE)], "gold": row["gold"]}) for place, row in enumerate(queries)]
    return {
        "another subject (azure_mcp)": other[:PAIRS],
        "the same server (azure_mcp)": near[:PAIRS],
        "vague: “do that again” (azure_mcp)": vague[::2],
    }


def steps() -> list[Couple]:
    """Take the steps of real tasks, each with the one before it."""
    return [
        (first, second)
        for first, second in pairwise(asked("livemcp_step"))
        if first["id"].partition("#")[0] == second["id"].partition("#")[0]
    ]


async def measure() -> None:
    """Measure and write the tables."""
    requests = [row["query"] for row in asked("livemcp_step") + asked("azure_mcp")][:TURNS]
    figures = {**await speed(requests), **await size(requests)}
    talks: dict[str, dict[str, float]] = {}
    path = bench_folder() / "azure_mcp" / "tools.jsonl"
    async with Scout.open(tools=path, store="memory:") as scout:
        hits = [await has(scout, row["query"], row["gold"]) for row in asked("azure_mcp")]
        figures["azure_right_among_8"] = fmean(hits)
        for label, pairs in couples({row["id"]: row["server"] for row in rows(path)}).items():
            talks[label] = {"conversations": len(pairs), **await follow_up(scout, pairs)}
    async with Scout.open(tools=bench_folder() / "livemcp_step" / "tools.jsonl", store="memory:") as scout:
        pairs = steps()
        talks["the next step of a task (livemcp_step)"] = {"conversations": len(pairs), **await follow_up(scout, pairs)}
    report({name: round(value, 4) for name, value in figures.items()}, talks)


HOW = f"""\
Speed: whole turns over the first {CATALOGUE:,} tools of mcp_catalogue, definitions for OpenAI included; each of the
{TURNS} requests is new, the two messages before it were asked before. Size: the definitions of a turn against those of
all tools of real_servers, for both APIs. Right: all queries of azure_mcp, `limit=8`.
"""
TALKS = """
Conversations of two requests, made from the labelled sets: how often the right tool of the second request, and that of
the first, are among the 8 for the second, without and with the first in `messages`.
"""


def report(figures: dict[str, float], talks: dict[str, dict[str, float]]) -> None:
    """Write both tables, and the same for programs."""
    first = [[name, value, ASKED.get(name, "")] for name, value in figures.items()]
    second = [[label, *(round(value, 3) for value in row.values())] for label, row in talks.items()]
    text = [
        f"# The tools of one chat turn\n\n`python -m benchmarks.turns`; {machine()}\n",
        HOW,
        markdown(["figure", "measured", "asked"], first),
        TALKS,
        markdown(["second request", *next(iter(talks.values()))], second),
    ]
    save("turns", {"machine": machine(), **figures, "conversations": talks}, "\n".join(text))


if __name__ == "__main__":
    asyncio.run(measure())
