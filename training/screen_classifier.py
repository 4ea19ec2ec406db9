"""Train the classifier of the screen, and measure it on what it was not trained on.

TOOLSCOUT_BENCH=... python training/screen_classifier.py      # 4 minutes on one core, numpy only

Attacks and look-alikes are those of `training/screen`, written for this purpose, and those of the corpus of the tests,
`tests/data/poisoned.jsonl`, but for the poisoned ones of its held-out half. All other examples are the passages of
public tools, taken to be honest. Writes `src/toolscout/data/screen/weights.tsv` and
`benchmarks/results/screen_classifier.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolscout import Server, Settings
from toolscout.errors import BadToolError
from toolscout.indexing.normalize import normalize_tool
from toolscout.indexing.screen.classifier import passages, subject_of
from toolscout.indexing.screen.features import features
from toolscout.indexing.screen.texts import END, Texts, readings
from toolscout.models import Tool

ROOT = Path(__file__).parent.parent
DATA = ROOT / "training" / "screen"
WEIGHTS = ROOT / "src" / "toolscout" / "data" / "screen" / "weights.tsv"
FIGURES = ROOT / "benchmarks" / "results" / "screen_classifier.json"
REAL = ("mcp_catalogue", "real_servers")
FURTHER = ("azure_mcp", "bfcl_synth", "livemcp_step", "metatool_single", "sealtools", "stabletoolbench")
CARRIERS = (
    "Returns the weather for a city.",
    "Converts an amount between two currencies.",
    "Lists the tasks of a project.",
    "Formats source code.",
    "Translates a text.",
    "Looks up a word in the dictionary.",
    "Resizes a picture.",
    "Finds trains between two stations.",
)
EVERYTHING = frozenset("talk prompt secret personal config file mail others money shell agent rules said".split())
"""The subject of an attack's twin: a tool that is about whatever the attack is about."""
SPELT_OUT = 60
"""How many attacks of each strategy the grammar spells out."""
FOLDS = 5
PARTS = 8
"""Into how many parts strategies are divided, to leave each part out of a training."""
ALARMS = {"untrusted": 0.013, "trusted": 0.003}
"""The share of real tools above a threshold, among those of servers that the classifier was not trained on."""
WEIGHT = {"attack": 20.0, "spelt out": 6.0, "look-alike": 20.0, "tool": 3.0}
PENALTY = 2.0
STEPS = 160
KEEP = 0.5
"""The share of features that each step keeps, so that no few of them, such as an author's style, carry a decision."""
LEAST = {"attack word": 2, "attack concept": 2, "tool word": 15, "tool pair": 40}
"""In how many examples a feature must occur to get a weight."""
SMALL = 0.04
"""Weights below this are dropped from the file."""

DISGUISES = {"zero-width", "bidi", "tag-characters", "variation-selectors", "homoglyph", "encoded", "ansi", "padding"}

_NAMED = re.compile(r"([A-Za-z_]\w*) ?: (.*)")
Features = frozenset[str]


@dataclass(frozen=True)
class Example:
    """One text or tool: its passages, each as a set of features."""

    kind: str
    group: str
    passages: tuple[Features, ...]


def read_lines(name: str) -> list[tuple[str, list[str]]]:
    """Read a file of attacks or look-alikes: for each, its strategy and its fields."""
    strategy, lines = "", []
    for line in (DATA / name).read_text("utf-8").splitlines():
        if line.startswith("## "):
            strategy = line[3:]
        elif line and strategy:
            lines.append((strategy, line.split(" || ")))
    return lines


def spell_out() -> list[tuple[str, list[str]]]:
    """Write attacks by the grammar."""
    chance = random.Random(7)
    grammar = tomllib.loads((DATA / "grammar.toml").read_text("utf-8"))
    slots = {name: phrases.split("|") for name, phrases in grammar["slot"].items()}

    def phrase(match: re.Match[str]) -> str:
        text = expand(chance.choice(slots[match[1].lower()]))
        return text[0].upper() + text[1:] if match[1][0].isupper() else text

    def expand(template: str) -> str:
        return re.sub(r"\{(\w+)\}", phrase, template)

    lines = []
    for strategy, templates in grammar["strategy"].items():
        choices = templates.split("|")
        texts = dict.fromkeys(expand(choices[number % len(choices)]) for number in range(3 * SPELT_OUT))
        for text in list(texts)[:SPELT_OUT]:
            name = chance.choice(("context", "note", "extra", "info", "data", "hint", "comment", "details"))
            lines.append((strategy, [f"{name}: {text[2:]}" if text.startswith("P ") else text]))
    return lines


def example(kind: str, strategy: str, fields: Sequence[str]) -> Example:
    """Read the fields of an attack or look-alike as the screen would, once within a tool about something else."""
    strings, paths = [], []
    for field in fields:
        named = _NAMED.fullmatch(field)
        strings.append(named[2] if named else field)
        paths.append(("inputSchema", "properties", named[1], "description") if named else ("description",))
    carrier = CARRIERS[int(hashlib.sha256(fields[0].encode()).hexdigest(), 16) % len(CARRIERS)]
    subjects = (subject_of("tool", "", carrier), EVERYTHING)
    return Example(
        kind,
        strategy,
        tuple(
            frozenset(features(passage.sentences, passage.place, subject))
            for reading in readings(END.join(strings), frozenset())
            for passage in passages(reading.text.split(END), paths)
            for subject in subjects
        ),
    )


def tool_example(kind: str, group: str, tool: Tool) -> Example:
    """Read a tool as the screen does."""
    texts, subject = Texts(tool), subject_of(tool.name, tool.title, tool.description)
    rows = [
        frozenset(features(passage.sentences, passage.place, subject))
        for reading in readings(texts.raw, frozenset())
        for passage in passages(reading.text.split(END), texts.paths)
    ]
    return Example(kind, group, tuple(rows))


def read_tools(names: Iterable[str]) -> list[Example]:
    """Read sets of public tools. The group of a tool is its server."""
    examples = []
    for name in names:
        for line in (Path(os.environ["TOOLSCOUT_BENCH"]) / name / "tools.jsonl").read_text("utf-8").splitlines():
            raw = json.loads(line)
            try:
                tool = normalize_tool(raw, Server(key="server", title="server"), Settings())
            except BadToolError:
                continue
            examples.append(tool_example("tool", str(raw.get("server")), tool))
    return examples


def sample_tools() -> list[Example]:
    """Read the tools of the demonstration."""
    lines = (ROOT / "src" / "toolscout" / "sample" / "tools.jsonl").read_text("utf-8").splitlines()
    return [
        tool_example(
            "tool", "sample", normalize_tool(json.loads(line), Server(key="server", title="server"), Settings())
        )
        for line in lines
    ]


def corpus_examples() -> list[Example]:
    """Read the corpus that tests use: all benign definitions, and the poisoned ones of the development half.

    Of a poisoned definition, the first sentence of the description is left out: it says what the tool does.
    """
    examples = []
    for line in (ROOT / "tests" / "data" / "poisoned.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        digest = hashlib.sha256(json.dumps(row["tool"], sort_keys=True).encode()).digest()
        if not row["poisoned"]:
            tool = normalize_tool(row["tool"], Server(key="server", title="server"), Settings())
            examples.append(tool_example("look-alike", f"corpus {row['kind']}", tool))
        elif digest[0] % 2 == 0 and row["kind"] not in DISGUISES:
            _, _, rest = str(row["tool"].get("description", "")).partition(". ")
            if rest:
                examples.append(example("attack", f"corpus {row['kind']}", [rest]))
    return examples


class Matrix:
    """Sets of features as a sparse matrix of ones."""

    def __init__(self, rows: Sequence[Features], vocabulary: dict[str, int]) -> None:
        columns = [[vocabulary[name] for name in row if name in vocabulary] for row in rows]
        self.shape = len(rows), len(vocabulary)
        self.columns = np.array([column for row in columns for column in row], dtype=np.int64)
        self.rows = np.repeat(np.arange(len(rows)), [len(row) for row in columns])

    def times(self, weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the sum of the weights of each row."""
        return np.bincount(self.rows, weights=weights[self.columns], minlength=self.shape[0])

    def transposed_times(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the sum of the values of the rows that hold each feature."""
        return np.bincount(self.columns, weights=values[self.rows], minlength=self.shape[1])


class Trainer:
    """All examples as one matrix, so that a training can leave some of them out."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = examples
        self.owners = np.repeat(np.arange(len(examples)), [len(item.passages) for item in examples])
        vocabulary = {name: number for number, name in enumerate(sorted(_vocabulary(examples)))}
        self.names = list(vocabulary)
        self.matrix = Matrix([passage for item in examples for passage in item.passages], vocabulary)
        self.poisoned = np.array([item.kind in ("attack", "spelt out") for item in examples], float)[self.owners]
        shares = [WEIGHT[item.kind] / (1 if item.kind == "tool" else len(item.passages) or 1) for item in examples]
        self.weight = np.array(shares)[self.owners] / self._repetitions()

    def _repetitions(self) -> np.ndarray[Any, Any]:
        """Count how often each passage of a tool occurs: many tools share the descriptions of parameters."""
        rows = [passage if item.kind == "tool" else None for item in self.examples for passage in item.passages]
        counts = Counter(row for row in rows if row is not None)
        return np.array([1 if row is None else counts[row] for row in rows], float)

    def train(self, without: np.ndarray[Any, Any] | None = None) -> tuple[np.ndarray[Any, Any], float]:
        """Fit a logistic regression by Adam on all examples but those that are left out."""
        weight = self.weight if without is None else self.weight * ~without[self.owners]
        weights, bias = np.zeros(self.matrix.shape[1]), -3.0
        first, second = np.zeros(len(weights) + 1), np.zeros(len(weights) + 1)
        chance = np.random.default_rng(1)
        for step in range(1, STEPS + 1):
            kept = (chance.random(len(weights)) < KEEP) / KEEP
            likelihood = 1 / (1 + np.exp(-np.clip(self.matrix.times(weights * kept) + bias, -30, 30)))
            error = weight * (likelihood - self.poisoned)
            slope = np.append(kept * self.matrix.transposed_times(error) + PENALTY * weights, error.sum())
            first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
            size = 0.15 * (1 - 0.9 * step / (STEPS + 1))
            change = size * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-9)
            weights, bias = weights - change[:-1], bias - float(change[-1])
        return weights, bias

    def scores(self, weights: np.ndarray[Any, Any], bias: float) -> np.ndarray[Any, Any]:
        """Return the score of each example, which is that of its most suspicious passage."""
        scores = np.full(len(self.examples), -20.0)
        np.maximum.at(scores, self.owners, self.matrix.times(weights) + bias)
        return scores


def _vocabulary(examples: Sequence[Example]) -> set[str]:
    attacks, tools = Counter[str](), Counter[str]()
    for item in examples:
        counts = attacks if item.kind in ("attack", "spelt out") else tools
        counts.update(set().union(*item.passages))
    names = {name for name, n in attacks.items() if n >= LEAST["attack concept" if "[" in name else "attack word"]}
    for name, count in tools.items():
        if "[" not in name and count >= LEAST["tool pair" if " " in name else "tool word"]:
            names.add(name)
    return names


def fold_of(server: str) -> int:
    """Return the fold of a server."""
    return int(hashlib.sha256(server.encode()).hexdigest(), 16) % FOLDS


def main() -> None:
    """Train, measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="skip the trainings without one strategy each")
    quick = parser.parse_args().quick
    real = read_tools(REAL)
    files = sorted(path.name for path in DATA.glob("attacks_*.txt"))
    examples = [example("attack", *line) for name in files for line in read_lines(name)]
    examples += [example("spelt out", *line) for line in spell_out()]
    examples += [example("look-alike", *line) for line in read_lines("look_alikes.txt")] + corpus_examples()
    examples += real + read_tools(FURTHER) + sample_tools()
    trainer = Trainer(examples)
    kinds = np.array([item.kind for item in examples])
    groups = np.array([item.group for item in examples])
    ours = np.zeros(len(examples), bool)
    start = int(np.flatnonzero(kinds == "tool")[0])
    ours[start : start + len(real)] = True

    unseen = np.full(len(examples), -20.0)
    folds = np.array([fold_of(group) for group in groups])
    for fold in range(FOLDS):
        chosen = (kinds == "tool") & (folds == fold)
        unseen[chosen] = trainer.scores(*trainer.train(chosen))[chosen]
    thresholds = {name: float(np.quantile(unseen[ours], 1 - share)) for name, share in ALARMS.items()}
    weights, bias = trainer.train()
    scores = trainer.scores(weights, bias)
    left_out = np.full(len(examples), -20.0)
    for part in () if quick else range(PARTS):
        chosen = np.zeros(len(examples), bool)
        for kind in ("attack", "look-alike"):
            chosen |= np.isin(groups, sorted(set(groups[kinds == kind]))[part::PARTS])
        chosen &= kinds != "tool"
        left_out[chosen] = trainer.scores(*trainer.train(chosen))[chosen]
    figures: dict[str, Any] = {"examples": {kind: int((kinds == kind).sum()) for kind in WEIGHT}}
    for name, threshold in thresholds.items():
        figures[name] = {
            "threshold": round(threshold, 2),
            "real_tools_of_servers_left_out": round(float((unseen[ours] >= threshold).mean()), 5),
            "real_tools": round(float((scores[ours] >= threshold).mean()), 5),
            "attacks_of_strategies_left_out": round(float((left_out[kinds == "attack"] >= threshold).mean()), 3),
            "look_alikes_of_groups_left_out": round(float((left_out[kinds == "look-alike"] >= threshold).mean()), 3),
        }
    hits = left_out >= thresholds["untrusted"]
    figures["strategies_left_out"] = {
        group: f"{int(hits[chosen].sum())}/{int(chosen.sum())}"
        for group in sorted(set(groups[kinds == "attack"]))
        for chosen in [(groups == group) & (kinds == "attack")]
    }
    print(json.dumps(figures, indent=1))

    lines = ["# Weights of the classifier of the screen. Made by training/screen_classifier.py, not by hand."]
    lines += [f"(bias)\t{bias:.3f}", *(f"({name})\t{value:.3f}" for name, value in thresholds.items())]
    lines += [
        f"{name}\t{weight:.2f}" for name, weight in zip(trainer.names, weights, strict=True) if abs(weight) >= SMALL
    ]
    WEIGHTS.write_text("\n".join(lines) + "\n", "utf-8")
    if not quick:
        FIGURES.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
