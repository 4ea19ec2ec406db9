"""A small language model does tasks through tools, in several arms, among 50 to 2,000 tools.

    python -m benchmarks.agent --model FILE.gguf [--arm NAME]... [--size N]... [--out FILE]
    python -m benchmarks.agent --report FILE...          the tables, of runs that may come from another machine

Needs a GPU, and about twenty minutes. docs/benchmarks.md says where the model is to be had.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.agent.tasks import read_tasks
from benchmarks.data import machine, markdown, save

SIZES = (50, 200, 1_000, 2_000)
ALL_TOOLS_SIZES = (50, 200)
"""The context of the model holds the definitions of some 80 tools."""


async def run(model_file: Path, arms: list[str], sizes: list[int], out: Path, device: str, most: int) -> None:
    """Do the tasks and write the outcomes of each arm and size as a line."""
    from benchmarks.agent.arms import ARMS
    from benchmarks.agent.episodes import play
    from benchmarks.agent.language_model import CONTEXT_TOKENS, LanguageModel, read_call
    from benchmarks.agent.pools import make_pools

    model = LanguageModel(model_file, device)
    tasks = read_tasks()
    tasks = random.Random(0).sample(tasks, min(most, len(tasks)))
    for size in sizes:
        for name in arms or ARMS:
            if (name == "oracle" and size != sizes[0]) or (name == "all" and size not in ALL_TOOLS_SIZES):
                continue
            started = time.perf_counter()
            async with AsyncExitStack() as stack:
                places = [(await stack.enter_async_context(ARMS[name](pool)), pool) for pool in make_pools(tasks, size)]
                outcomes = await play(places, model, CONTEXT_TOKENS, read_call)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"arm": name, "size": size, "outcomes": outcomes}) + "\n")
            right = fmean(outcome["right"] for outcome in outcomes)
            print(f"{name} {size}: {right:.3f} ({time.perf_counter() - started:.0f} s)", flush=True)


def report(files: list[Path]) -> None:
    """Write the tables."""
    lines = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    runs = {(line["arm"], line["size"]): line["outcomes"] for line in lines}
    table = [[arm, size, *_figures(outcomes).values()] for (arm, size), outcomes in runs.items()]
    head = ["arm", "tools", *_figures(next(iter(runs.values())))]
    text = [
        "# A small model does tasks through tools",
        "",
        f"{len(read_tasks())} tasks over real definitions, each with one right tool and checkable arguments. The model",
        "is Qwen2.5-Coder-1.5B-Instruct in 4 bits. It always writes the likeliest word. The first call that reaches a",
        "server counts. `right` means that the tool and all arguments are right.",
        "",
        markdown(head, table),
    ]
    figures = [{"arm": arm, "tools": size, **_figures(outcomes)} for (arm, size), outcomes in runs.items()]
    save("agent", {"machine": machine(), "figures": figures}, "\n".join(text))


def _figures(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    def mean(name: str) -> float:
        return fmean(float(outcome[name]) for outcome in outcomes)

    return {
        "tasks": len(outcomes),
        "right": f"{mean('right'):.3f}",
        "right tool": f"{mean('right_tool'):.3f}",
        "tokens read": round(mean("read_tokens")),
        "tokens written": round(mean("written_tokens")),
        "turns": f"{mean('turns'):.2f}",
        "no call": f"{fmean(outcome['ended'] == 'no call' for outcome in outcomes):.3f}",
        "never called": f"{fmean(outcome['ended'] in ('turns', 'too long') for outcome in outcomes):.3f}",
    }


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="the GGUF file")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--arm", action="append", default=[])
    parser.add_argument("--size", action="append", type=int, default=[])
    parser.add_argument("--most", type=int, default=10_000, help="how many tasks, drawn at random")
    parser.add_argument("--out", type=Path, default=Path("build/agent.jsonl"))
    parser.add_argument("--report", type=Path, nargs="+")
    given = parser.parse_args()
    if given.report:
        report(given.report)
    elif given.model:
        asyncio.run(run(given.model, given.arm, given.size or list(SIZES), given.out, given.device, given.most))
    else:
        parser.error("--model or --report is needed")


main()
