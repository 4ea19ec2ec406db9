"""How well the screen works: poisoned definitions found, real tools quarantined by mistake, time per tool.

TOOLSCOUT_BENCH=... python -m benchmarks.trust
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any

from benchmarks.data import bench_folder, machine, markdown, rows, save
from toolscout import Server, Settings
from toolscout.errors import BadToolError
from toolscout.indexing.normalize import normalize_tool
from toolscout.indexing.screen import quarantines, screen_tool
from toolscout.models import Tool
from toolscout.tool_keys import server_slug

CORPUS = Path(__file__).parent.parent / "tests" / "data" / "poisoned.jsonl"
REAL = ("mcp_catalogue", "real_servers")


def tool_of(raw: dict[str, Any]) -> Tool | None:
    """Normalize a row as indexing does."""
    name = raw.get("server") or "local"
    try:
        return normalize_tool(raw, Server(key=server_slug(name), title=name), Settings())
    except BadToolError:
        return None


def on_corpus() -> dict[str, Any]:
    """Measure detection, and false alarms on look-alikes, for both halves and by kind."""
    halves: dict[str, list[bool]] = defaultdict(list)
    kinds: dict[str, list[bool]] = defaultdict(list)
    for row in rows(CORPUS):
        tool = tool_of(row["tool"])
        found = tool is not None and quarantines(screen_tool(tool))
        digest = hashlib.sha256(json.dumps(row["tool"], sort_keys=True).encode()).digest()
        half = "held out" if digest[0] % 2 else "development"
        halves[f"{'poisoned' if row['poisoned'] else 'benign'}, {half}"].append(found)
        if row["poisoned"]:
            kinds[row["kind"]].append(found)
    return {
        "halves": {name: {"definitions": len(hits), "quarantined": sum(hits)} for name, hits in sorted(halves.items())},
        "kinds": {name: {"definitions": len(hits), "quarantined": sum(hits)} for name, hits in sorted(kinds.items())},
    }


def on_real_tools(name: str) -> dict[str, Any]:
    """Screen a set of real tools: how many are quarantined or noticed, by which rule, and how long each takes."""
    tools = [tool for raw in rows(bench_folder() / name / "tools.jsonl") if (tool := tool_of(raw))]
    times, quarantined, noticed = [], defaultdict(list), Counter()
    for tool in tools:
        started = time.process_time_ns()
        findings = screen_tool(tool)
        times.append((time.process_time_ns() - started) / 1_000)
        for finding in findings:
            if finding.severity == "quarantine":
                quarantined[finding.rule].append(tool.key)
            else:
                noticed[finding.rule] += 1
    count = len({key for keys in quarantined.values() for key in keys})
    return {
        "tools": len(tools),
        "quarantined": count,
        "quarantined_percent": round(100 * count / len(tools), 3),
        "quarantined_by_rule": {rule: sorted(keys) for rule, keys in sorted(quarantined.items())},
        "noticed_by_rule": dict(sorted(noticed.items())),
        "us_median": round(median(times), 1),
        "us_mean": round(mean(times), 1),
        "us_p99": round(quantiles(times, n=100)[98], 1),
    }


def main() -> None:
    """Measure and write the tables."""
    corpus, real = on_corpus(), {name: on_real_tools(name) for name in REAL}
    text = ["# Trust in definitions", "", f"`python -m benchmarks.trust`; {machine()}", ""]
    text += ["The corpus, `tests/data/poisoned.jsonl`; the rules were tuned on the development half.", ""]
    text += [_table("half", corpus["halves"]), "", "Poisoned definitions by kind:", "", _table("kind", corpus["kinds"])]
    head = [
        "real tools",
        "screened",
        "quarantined",
        "percent (asked < 0.5)",
        "noticed",
        "µs median",
        "µs mean",
        "µs p99",
    ]
    body = [
        [
            name,
            found["tools"],
            found["quarantined"],
            found["quarantined_percent"],
            sum(found["noticed_by_rule"].values()),
            found["us_median"],
            found["us_mean"],
            found["us_p99"],
        ]
        for name, found in real.items()
    ]
    text += ["", "Processor time on real tools, none of which is known to be hostile:", "", markdown(head, body), ""]
    keys = [
        [name, rule, ", ".join(f"`{key}`" for key in found)]
        for name, figures in real.items()
        for rule, found in figures["quarantined_by_rule"].items()
    ]
    text += ["Quarantined real tools:", "", markdown(["set", "rule", "keys"], keys)] if keys else []
    save("trust", {"machine": machine(), "corpus": corpus, "real": real}, "\n".join(text))


def _table(head: str, figures: dict[str, dict[str, int]]) -> str:
    body = [
        [name, found["definitions"], found["quarantined"], f"{found['quarantined'] / found['definitions']:.1%}"]
        for name, found in figures.items()
    ]
    return markdown([head, "definitions", "quarantined", "rate"], body)


if __name__ == "__main__":
    main()
