"""How well the screen works: poisoned definitions found, real tools quarantined by mistake, time per tool.

TOOLSCOUT_BENCH=... [TOOLSCOUT_ATTACKS=definitions.jsonl] python -m benchmarks.trust

TOOLSCOUT_ATTACKS names definitions that neither rules nor classifier were made with: rows of `label` (`poisoned` or
`benign`), `tier` (`naive`: the attacker does not know the rules; `informed`: has read them) and `tool`.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any

from benchmarks.data import RESULTS, bench_folder, machine, markdown, rows, save
from toolscout import Server, Settings
from toolscout.errors import BadToolError
from toolscout.indexing.normalize import normalize_tool, not_kept
from toolscout.indexing.screen import screen_tool
from toolscout.indexing.trust import screen_once
from toolscout.models import Tool
from toolscout.tool_keys import server_slug

CORPUS = Path(__file__).parent.parent / "tests" / "data" / "poisoned.jsonl"
REAL = ("mcp_catalogue", "real_servers")
TRUST = ("untrusted", "trusted")
"""Whether the operator trusts the server. The classifier is more careful where they do."""


def tool_of(raw: dict[str, Any], *, trusted: bool = True) -> Tool | None:
    """Normalize a row as indexing does."""
    name = raw.get("server") or "local"
    try:
        return normalize_tool(raw, Server(key=server_slug(name), title=name, trusted=trusted), Settings())
    except BadToolError:
        return None


def is_stopped(raw: dict[str, Any], *, trusted: bool = True) -> bool:
    """Return whether indexing quarantines a definition, also for what it holds beside the fields that are kept."""
    tool = tool_of(raw, trusted=trusted)
    return tool is not None and bool(screen_once(tool, None, not_kept(raw)).poison)


def on_corpus() -> dict[str, Any]:
    """Measure detection, and false alarms on look-alikes, for both halves and by kind."""
    halves: dict[str, list[bool]] = defaultdict(list)
    kinds: dict[str, list[bool]] = defaultdict(list)
    for row in rows(CORPUS):
        hit = is_stopped(row["tool"])
        digest = hashlib.sha256(json.dumps(row["tool"], sort_keys=True).encode()).digest()
        half = "held out" if digest[0] % 2 else "development"
        halves[f"{'poisoned' if row['poisoned'] else 'benign'}, {half}"].append(hit)
        if row["poisoned"]:
            kinds[row["kind"]].append(hit)
    return {
        "halves": {name: {"definitions": len(hits), "quarantined": sum(hits)} for name, hits in sorted(halves.items())},
        "kinds": {name: {"definitions": len(hits), "quarantined": sum(hits)} for name, hits in sorted(kinds.items())},
    }


def on_attacks(*, trusted: bool) -> dict[str, dict[str, int]]:
    """Measure on definitions by others, by what the attacker knows."""
    tiers: dict[str, list[bool]] = defaultdict(list)
    for row in rows(Path(os.environ["TOOLSCOUT_ATTACKS"])) if "TOOLSCOUT_ATTACKS" in os.environ else ():
        name = f"{row['tier']} attackers" if row["label"] == "poisoned" else "benign look-alikes"
        tiers[name].append(is_stopped(row["tool"], trusted=trusted))
    return {name: {"definitions": len(hits), "quarantined": sum(hits)} for name, hits in sorted(tiers.items())}


def on_real_tools(name: str, *, trusted: bool) -> dict[str, Any]:
    """Screen a set of real tools: how many are quarantined or noticed, by which rule, and how long each takes."""
    tools = [tool for raw in rows(bench_folder() / name / "tools.jsonl") if (tool := tool_of(raw, trusted=trusted))]
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
    corpus = on_corpus()
    attacks = {trust: on_attacks(trusted=trust == "trusted") for trust in TRUST}
    real = {f"{name}, {trust}": on_real_tools(name, trusted=trust == "trusted") for name in REAL for trust in TRUST}
    training = json.loads((RESULTS / "screen_classifier.json").read_text("utf-8"))
    text = ["# Trust in definitions", "", f"`python -m benchmarks.trust`; {machine()}", ""]
    for trust in TRUST:
        text += [f"Definitions that nothing was trained on, server {trust}:", "", _table("kind", attacks[trust]), ""]
    text += ["The classifier alone, on what it was not trained on (`training/screen_classifier.py`):", ""]
    names = ("attacks_of_strategies_left_out", "look_alikes_of_groups_left_out", "real_tools_of_servers_left_out")
    alone = [[name.replace("_", " "), *(f"{training[trust][name]:.1%}" for trust in TRUST)] for name in names]
    text += [markdown(["above the threshold", *TRUST], alone), ""]
    text += [
        "The corpus, `tests/data/poisoned.jsonl`, server trusted. The rules were tuned on the development half, and"
    ]
    text += ["the classifier was trained on it and on all benign definitions.", ""]
    text += [_table("half", corpus["halves"]), "", "Poisoned definitions by kind:", ""]
    text += [_table("kind", corpus["kinds"])]
    head = [
        "real tools",
        "screened",
        "quarantined",
        "percent (asked <= 0.3)",
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
    figures = {"machine": machine(), "attacks": attacks, "classifier": training, "corpus": corpus, "real": real}
    save("trust", figures, "\n".join(text))


def _table(head: str, figures: dict[str, dict[str, int]]) -> str:
    body = [
        [name, found["definitions"], found["quarantined"], f"{found['quarantined'] / found['definitions']:.1%}"]
        for name, found in figures.items()
    ]
    return markdown([head, "definitions", "quarantined", "rate"], body)


if __name__ == "__main__":
    main()
