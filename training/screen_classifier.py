"""Train the classifier of the screen, and measure it on what it was not trained on.

TOOLSCOUT_BENCH=... python training/screen_classifier.py API_FOLDER      # 4 minutes on one core, numpy only

Attacks and look-alikes are those of `training/screen`, written for this purpose, and those of the corpus of the tests,
`tests/data/poisoned.jsonl`, but for the poisoned ones of its held-out half. All other examples are the passages of
public tools, and the operations of public web APIs (`api_documents.py`), taken to be honest. The tools of
`real_servers` are kept back. To measure, each of eight trainings leaves out an eighth of the servers and of the
strategies at the same time. Servers that share a description count as one. In the file of weights, the score from
which a tool of an untrusted server is quarantined is 0.

Writes `src/toolscout/data/screen/weights.tsv` and `benchmarks/results/screen_classifier.json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from api_documents import read_api_documents
from toolscout import Server, Settings
from toolscout.errors import BadToolError
from toolscout.indexing.normalize import normalize_tool
from toolscout.indexing.screen.classifier import length_allowance, passages, subject_of
from toolscout.indexing.screen.features import features
from toolscout.indexing.screen.texts import END, Texts, readings
from toolscout.models import Tool

ROOT = Path(__file__).parent.parent
DATA = ROOT / "training" / "screen"
WEIGHTS = ROOT / "src" / "toolscout" / "data" / "screen" / "weights.tsv"
FIGURES = ROOT / "benchmarks" / "results" / "screen_classifier.json"
REAL = "mcp_catalogue"
KEPT_BACK = "real_servers"
"""Measured on, and never trained on: neither its tools nor those of other sets that share a description with one."""
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
SHARED_CHARS = 60
"""How long a description is that tells a shared server."""
FOLDS = 8
"""Into how many parts servers and strategies are divided, to leave each part out of a training."""
ALARMS = {"untrusted": 0.003, "trusted": 0.0005}
"""The share of real tools above a threshold, among those of servers that the classifier was not trained on."""
SHARES = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02)
"""The shares for which the figures say how many attacks are found."""
WEIGHT = {"attack": 20.0, "spelt out": 6.0, "look-alike": 30.0, "tool": 3.0, "kept back": 0.0}
PENALTY = 2.0
STEPS = 160
KEEP = 0.3
"""The share of features that each step keeps, so that no few of them, such as an author's style, carry a decision."""
RUNS = 3
"""How many fits with other features dropped are averaged."""
LEAST = {"attack word": 3, "attack concept": 2, "tool word": 6, "tool pair": 12}
"""In how many examples a feature must occur to get a weight."""
SMALL = 0.04
"""Weights below this are dropped from the file."""

DISGUISES = {"zero-width", "bidi", "tag-characters", "variation-selectors", "homoglyph", "encoded", "ansi", "padding"}

_NAMED = re.compile(r"([A-Za-z_]\w*) ?: (.*)")
Features = frozenset[str]
Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Example:
    """One text or tool: its passages, each as a set of features. `count` is how many its longest reading has."""

    kind: str
    group: str
    passages: tuple[Features, ...]
    count: int = 0
    description: str = ""


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
    strings: list[str] = []
    paths: list[tuple[str, ...]] = []
    for field in fields:
        named = _NAMED.fullmatch(field)
        strings.append(named[2] if named else field)
        paths.append(("inputSchema", "properties", named[1], "description") if named else ("description",))
    carrier = CARRIERS[int(hashlib.sha256(fields[0].encode()).hexdigest(), 16) % len(CARRIERS)]
    subjects = (subject_of("tool", "", carrier), EVERYTHING)
    return _example(kind, strategy, END.join(strings), paths, subjects)


def tool_example(kind: str, group: str, tool: Tool) -> Example:
    """Read a tool as the screen does."""
    texts, subject = Texts(tool), subject_of(tool.name, tool.title, tool.description)
    return _example(kind, group, texts.raw, texts.paths, (subject,), tool.description)


def _example(
    kind: str,
    group: str,
    raw: str,
    paths: Sequence[tuple[str, ...]],
    subjects: Sequence[frozenset[str]],
    description: str = "",
) -> Example:
    found = [list(passages(reading.text.split(END), paths)) for reading in readings(raw, frozenset())]
    rows = [
        frozenset(features(passage.sentences, passage.place, subject))
        for subject in subjects
        for reading in found
        for passage in reading
    ]
    return Example(kind, group, tuple(rows), max(map(len, found), default=0), description)


def read_set(name: str) -> Iterator[dict[str, Any]]:
    """Read the rows of a set of public tools."""
    for line in (Path(os.environ["TOOLSCOUT_BENCH"]) / name / "tools.jsonl").read_text("utf-8").splitlines():
        yield json.loads(line)


def tool_examples(kind: str, rows: Iterable[dict[str, Any]]) -> Iterator[Example]:
    """Read tools as the screen does. The group of a tool is its server."""
    for row in rows:
        with suppress(BadToolError):
            tool = normalize_tool(row, Server(key="server", title="server"), Settings())
            yield tool_example(kind, str(row.get("server")), tool)


def without_kept_back(examples: Iterable[Example], kept_back: Iterable[Example]) -> list[Example]:
    """Leave out the tools that share a description with one that is kept back."""
    descriptions = {_shared_text(item) for item in kept_back} - {""}
    return [item for item in examples if _shared_text(item) not in descriptions]


def _shared_text(item: Example) -> str:
    """Return the description by which a copy of a tool is known, or nothing where it is too short to tell."""
    return " ".join(item.description.lower().split()) if len(item.description) > SHARED_CHARS else ""


def sample_tools() -> list[Example]:
    """Read the tools of the demonstration."""
    lines = (ROOT / "src" / "toolscout" / "sample" / "tools.jsonl").read_text("utf-8").splitlines()
    return list(tool_examples("tool", ({**json.loads(line), "server": "sample"} for line in lines)))


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


class Trainer:
    """All examples as one sparse matrix of ones, each different passage once, so that a training can leave some out."""

    def __init__(self, examples: Sequence[Example]) -> None:
        vocabulary = {name: number for number, name in enumerate(sorted(_vocabulary(examples)))}
        self.names = list(vocabulary)
        different: dict[frozenset[int], int] = {}
        self.passages = np.array(
            [
                different.setdefault(frozenset(vocabulary[name] for name in row if name in vocabulary), len(different))
                for item in examples
                for row in item.passages
            ]
        )
        self.owners = np.repeat(np.arange(len(examples)), [len(item.passages) for item in examples])
        self.allowances = np.array([length_allowance(item.count) for item in examples])
        self.columns = np.array([column for row in different for column in row], dtype=np.int64)
        self.rows = np.repeat(np.arange(len(different)), [len(row) for row in different])
        self.height = len(different)
        self.poisoned = np.array([item.kind in ("attack", "spelt out") for item in examples])[self.owners]
        self.weight = self._weigh(examples)

    def _weigh(self, examples: Sequence[Example]) -> Numbers:
        """Return the weight of each passage. Many tools share the descriptions of parameters: these count once."""
        is_tool = np.array([item.kind == "tool" for item in examples])[self.owners]
        repetitions = np.bincount(self.passages[is_tool], minlength=self.height)[self.passages]
        shares = [WEIGHT[item.kind] / (1 if item.kind == "tool" else len(item.passages) or 1) for item in examples]
        return np.where(is_tool, 1 / np.maximum(repetitions, 1), 1.0) * np.array(shares)[self.owners]

    def train(self, without: Numbers | None = None) -> tuple[Numbers, float]:
        """Return the mean of several fits to all examples but those that are left out."""
        fits = [self._fit(seed, without) for seed in range(1, RUNS + 1)]
        return np.mean([weights for weights, _ in fits], axis=0), float(np.mean([bias for _, bias in fits]))

    def _fit(self, seed: int, without: Numbers | None) -> tuple[Numbers, float]:
        """Fit a logistic regression by Adam."""
        weight = self.weight if without is None else self.weight * ~without[self.owners]
        of_attacks = np.bincount(self.passages, weights=weight * self.poisoned, minlength=self.height)
        of_all = np.bincount(self.passages, weights=weight, minlength=self.height)
        weights, bias = np.zeros(len(self.names)), -3.0
        first, second = np.zeros(len(weights) + 1), np.zeros(len(weights) + 1)
        chance = np.random.default_rng(seed)
        for step in range(1, STEPS + 1):
            kept = (chance.random(len(weights)) < KEEP) / KEEP
            likelihood = 1 / (1 + np.exp(-np.clip(self._sums(weights * kept) + bias, -30, 30)))
            error = of_all * likelihood - of_attacks
            sums = np.bincount(self.columns, weights=error[self.rows], minlength=len(weights))
            slope = np.append(kept * sums + PENALTY * weights, error.sum())
            first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
            size = 0.15 * (1 - 0.9 * step / (STEPS + 1))
            change = size * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-9)
            weights, bias = weights - change[:-1], bias - float(change[-1])
        return weights, bias

    def scores(self, weights: Numbers, bias: float) -> Numbers:
        """Return the score of each example, which is that of its most suspicious passage, less the allowance."""
        scores = np.full(len(self.allowances), -20.0)
        np.maximum.at(scores, self.owners, (self._sums(weights) + bias)[self.passages])
        return scores - self.allowances

    def _sums(self, weights: Numbers) -> Numbers:
        return np.bincount(self.rows, weights=weights[self.columns], minlength=self.height)


def _vocabulary(examples: Sequence[Example]) -> set[str]:
    attacks, tools = Counter[str](), Counter[str]()
    for item in examples:
        if item.kind == "kept back":
            continue
        counts = attacks if item.kind in ("attack", "spelt out") else tools
        counts.update(set().union(*item.passages))
    names = {name for name, n in attacks.items() if n >= LEAST["attack concept" if "[" in name else "attack word"]}
    for name, count in tools.items():
        if "[" not in name and count >= LEAST["tool pair" if " " in name else "tool word"]:
            names.add(name)
    return names


def folds_of(examples: Sequence[Example]) -> Numbers:
    """Divide strategies, groups of look-alikes and servers into folds. Servers that share a description are one."""
    parents: dict[str, str] = {}
    first: dict[str, str] = {}

    def root(server: str) -> str:
        while parents.setdefault(server, server) != server:
            server = parents[server]
        return server

    for item in examples:
        if item.kind == "tool" and (text := _shared_text(item)):
            parents[root(item.group)] = root(first.setdefault(text, item.group))
    parts = {
        kinds: sorted({item.group for item in examples if item.kind in kinds})
        for kinds in (("attack", "spelt out"), ("look-alike",))
    }
    places = {
        (kind, group): n % FOLDS for kinds, groups in parts.items() for n, group in enumerate(groups) for kind in kinds
    }
    return np.array([places.get((item.kind, item.group), _hash(root(item.group)) % FOLDS) for item in examples])


def _hash(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def read_examples() -> tuple[list[Example], int]:
    """Read all examples. The number is that of the real tools, which come first of all tools."""
    kept_back = list(tool_examples("kept back", read_set(KEPT_BACK)))
    real = without_kept_back(tool_examples("tool", read_set(REAL)), kept_back)
    further = without_kept_back(tool_examples("tool", chain.from_iterable(map(read_set, FURTHER))), kept_back)
    further += tool_examples("tool", read_api_documents(Path(sys.argv[1])))
    lines = {kind: sorted(path.name for path in DATA.glob(f"{kind}*.txt")) for kind in ("attacks", "look_alikes")}
    examples = [example("attack", *line) for name in lines["attacks"] for line in read_lines(name)]
    examples += [example("spelt out", *line) for line in spell_out()]
    examples += [example("look-alike", *line) for name in lines["look_alikes"] for line in read_lines(name)]
    examples += corpus_examples() + real + further + sample_tools() + kept_back
    return examples, len(real)


def main() -> None:
    """Measure, train and write."""
    examples, real = read_examples()
    trainer, folds = Trainer(examples), folds_of(examples)
    kinds = np.array([item.kind for item in examples])
    groups = np.array([item.group for item in examples])
    ours = np.zeros(len(examples), bool)
    start = int(np.flatnonzero(kinds == "tool")[0])
    ours[start : start + real] = True

    unseen = np.zeros(len(examples))
    for fold in range(FOLDS):
        chosen = folds == fold
        unseen[chosen] = trainer.scores(*trainer.train(chosen))[chosen]
    weights, bias = trainer.train()
    scores = trainer.scores(weights, bias)

    def figures_at(share: float) -> dict[str, float]:
        threshold = float(np.quantile(unseen[ours], 1 - share))
        return {
            "threshold": round(threshold, 3),
            "real_tools_of_servers_left_out": round(float((unseen[ours] >= threshold).mean()), 5),
            "real_tools": round(float((scores[ours] >= threshold).mean()), 5),
            "real_tools_kept_back": round(float((scores[kinds == "kept back"] >= threshold).mean()), 5),
            "attacks_of_strategies_left_out": round(float((unseen[kinds == "attack"] >= threshold).mean()), 3),
            "look_alikes_of_groups_left_out": round(float((unseen[kinds == "look-alike"] >= threshold).mean()), 3),
        }

    figures: dict[str, Any] = {"examples": dict(Counter(kinds.tolist()))}
    figures |= {name: figures_at(share) for name, share in ALARMS.items()}
    figures["curve"] = [figures_at(share) for share in SHARES]
    hits = unseen >= figures["untrusted"]["threshold"]
    figures["strategies_left_out"] = {
        group: f"{int(hits[chosen].sum())}/{int(chosen.sum())}"
        for group in sorted(set(groups[kinds == "attack"]))
        for chosen in [(groups == group) & (kinds == "attack")]
    }
    print(json.dumps(figures, indent=1))

    zero = figures["untrusted"]["threshold"]
    rows = ["# Weights of the classifier of the screen. Made by training/screen_classifier.py, not by hand."]
    rows += [f"(bias)\t{bias - zero:.3f}", *(f"({name})\t{figures[name]['threshold'] - zero:.3f}" for name in ALARMS)]
    rows += [
        f"{name}\t{weight:.2f}" for name, weight in zip(trainer.names, weights, strict=True) if abs(weight) >= SMALL
    ]
    WEIGHTS.write_text("\n".join(rows) + "\n", "utf-8")
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
