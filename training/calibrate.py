"""Fit `toolscout.discovery.calibration`, and measure it on sets that were left out of the fitting.

    python training/export_base.py --out build/base          # the judge of equivalents: the untuned model
    TOOLSCOUT_BENCH=../shared/bench python training/calibrate.py --judge build/base --out benchmarks/results

Prints the constants to copy, and writes `calibration.json` and the reliability plot `calibration.png`.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpus import DEVELOPMENT, hashes
from toolscout.discovery.calibration import THRESHOLD_STRANGE
from trials import Texts, Trial, make_trials

FACTS = ("strength", "lead", "cosine", "known")
BY_WORDS = ("strength", "known")
SHARED = ("strength", "lead", "several")
SHARED_BY_WORDS = ("strength", "several")
WEIGHT = {
    "fits": 1.0,
    "removed": 0.5,
    "foreign": 0.5,
    **{f"{kind}-{size}": 0.3 for kind in ("fits", "none") for size in (12, 40, 150)},
    "fits-4000": 0.3,
    "fits-all": 0.3,
}
"""How much a kind counts in the fitting, whatever the number of its trials; what is not here is only measured."""
LOST = 0.05
PENALTY = 1.0
BINS = 10


@dataclass(frozen=True)
class Curves:
    """The fitted weights, in the units of the facts."""

    fits: dict[str, float]
    share: dict[str, float]

    def likely(self, trial: Trial) -> float:
        """Return how likely something fits."""
        return _curve(
            self.fits["intercept"]
            + sum(self.fits[name] * trial.facts[name] for name in self.fits if name in trial.facts)
        )

    def scores(self, trial: Trial) -> np.ndarray:
        """Return the scores of the first hits."""
        known = sum(self.share[name] * trial.facts[name] for name in self.share if name in trial.facts)
        return self.likely(trial) * _curve(self.share["intercept"] + known + self.share["gap"] * trial.gap)


def _curve(logit: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0)))


def logistic(rows: np.ndarray, right: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return intercept and weights of a ridge-penalised logistic curve, by Newton's method."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    table = np.hstack([np.ones((len(rows), 1)), (rows - mean) / spread])
    ridge = PENALTY * np.eye(table.shape[1])
    ridge[0, 0] = 1e-8
    found = np.zeros(table.shape[1])
    for _ in range(60):
        guess = _curve(table @ found)
        slope = table.T @ (table * (weight * guess * (1 - guess) + 1e-9)[:, None]) + ridge
        step = np.linalg.solve(slope, table.T @ (weight * (right - guess)) - ridge @ found)
        found += step
        if np.abs(step).max() < 1e-8:
            break
    plain = found[1:] / spread
    return np.concatenate([[found[0] - plain @ mean], plain])


def fit(trials: Sequence[Trial], facts: Sequence[str], shared: Sequence[str]) -> Curves:
    """Fit both curves."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for trial in trials:
        counts[trial.set, trial.kind] += 1
    used = [trial for trial in trials if trial.kind in WEIGHT]
    weight = np.array([500 * WEIGHT[trial.kind] / counts[trial.set, trial.kind] for trial in used])
    rows = np.array([[trial.facts[name] for name in facts] for trial in used])
    whether = logistic(rows, np.array([float(trial.answerable) for trial in used]), weight)
    hits = [
        (trial, one, place)
        for trial, one in zip(used, weight, strict=True)
        if trial.answerable
        for place in range(len(trial.gap))
    ]
    rows = np.array([[trial.gap[place], *(trial.facts[name] for name in shared)] for trial, _, place in hits])
    right = np.array([float(trial.right[place]) for trial, _, place in hits])
    which = logistic(rows, right, np.array([one for _, one, _ in hits]))
    return Curves(
        fits=dict(zip(("intercept", *facts), whether.tolist(), strict=True)),
        share=dict(zip(("intercept", "gap", *shared), which.tolist(), strict=True)),
    )


def area(above: np.ndarray, below: np.ndarray) -> float:
    """Return how often one of `above` is above one of `below`."""
    joined = np.concatenate([above, below])
    ranks = np.empty(len(joined))
    ranks[np.argsort(joined, kind="stable")] = np.arange(1, len(joined) + 1)
    return float((ranks[: len(above)].sum() - len(above) * (len(above) + 1) / 2) / len(above) / len(below))


def error(scores: np.ndarray, right: np.ndarray) -> float:
    """Return the expected calibration error over ten bins of equal width."""
    place = np.minimum((scores * BINS).astype(int), BINS - 1)
    parts = [place == one for one in range(BINS)]
    return float(sum(part.mean() * abs(scores[part].mean() - right[part].mean()) for part in parts if part.any()))


def measure(trials: Sequence[Trial], facts: Sequence[str], shared: Sequence[str]) -> dict[str, Any]:
    """Fit without each set in turn, and measure on it."""
    likely: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    first: dict[str, list[tuple[float, float]]] = defaultdict(list)
    ten: list[tuple[float, float]] = []
    for name in DEVELOPMENT:
        curves = fit([trial for trial in trials if trial.set != name], facts, shared)
        for trial in trials:
            if trial.set == name:
                likely[name, trial.kind].append((curves.likely(trial), not trial.facts["known"]))
                if trial.kind in ("fits", "removed"):
                    scores = curves.scores(trial)
                    first[name].append((scores[0], float(trial.right[0])))
                    ten.extend(zip(scores, trial.right.astype(float), strict=True))
    found = {key: np.array(values) for key, values in likely.items()}

    def empty(name: str, kind: str, least: float) -> float:
        fits, strange = found[name, kind].T
        return float((fits < np.where(strange, max(least, THRESHOLD_STRANGE), least)).mean())

    def declined(kind: str, least: float) -> float:
        return float(np.mean([empty(name, kind, least) for name in DEVELOPMENT if (name, kind) in found]))

    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if declined("fits", middle) > LOST else (middle, high)
    kinds = list(dict.fromkeys(kind for _, kind in found))
    pairs = {name: np.array(rows) for name, rows in first.items()}
    pooled, every = np.concatenate(list(pairs.values())), np.array(ten)
    bins = [pooled[np.minimum((pooled[:, 0] * BINS).astype(int), BINS - 1) == one] for one in range(BINS)]
    return {
        "lost by set": {name: round(empty(name, "fits", low), 3) for name in DEVELOPMENT},
        "declined": {
            f"{least:.3f}": {kind: round(declined(kind, least), 3) for kind in kinds}
            for least in (low, 0.06, 0.08, 0.09, 0.1, 0.12, 0.15, 0.2, 0.3)
        },
        "area": {
            kind: {name: round(area(found[name, "fits"][:, 0], found[name, kind][:, 0]), 3) for name in DEVELOPMENT}
            for kind in ("removed", "removed-narrow", "foreign")
        },
        "error of the first hit": round(error(*pooled.T), 3),
        "by set": {name: round(error(*rows.T), 3) for name, rows in pairs.items()},
        "error of ten hits": round(error(*every.T), 3),
        "reliability": [[round(float(x), 3) for x in part.mean(axis=0)] + [len(part)] for part in bins if len(part)],
    }


def plot(measured: dict[str, Any], target: Path) -> None:
    """Draw how often a score comes true."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 5))
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    rows = np.array(measured["reliability"])
    axes.scatter(rows[:, 0], rows[:, 1], s=rows[:, 2] / rows[:, 2].max() * 160 + 12)
    axes.plot(rows[:, 0], rows[:, 1])
    axes.set_xlabel("score of the first hit")
    axes.set_ylabel("share that is right")
    axes.set_title(f"each set left out of the fitting: error {measured['error of the first hit']:.3f}", fontsize=10)
    figure.tight_layout()
    figure.savefig(target, dpi=120, metadata={"Software": None})


def main() -> None:
    """Make the trials, measure, fit on everything, write."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--judge", type=Path, required=True, help="the folder of the untuned model")
    parser.add_argument("--cache", type=Path, default=Path("build/vectors"), help="where vectors are kept")
    parser.add_argument("--out", type=Path, default=None, help="folder for calibration.json and calibration.png")
    options = parser.parse_args()
    texts = Texts(options.cache, options.judge)
    report: dict[str, Any] = {"data": dict(hashes((*DEVELOPMENT, "mcp_catalogue")))}
    for label, facts, shared in (("vectors", FACTS, SHARED), ("words", BY_WORDS, SHARED_BY_WORDS)):
        trials = list(make_trials(texts, by_words=label == "words"))
        report[label] = measure(trials, facts, shared)
        curves = fit(trials, facts, shared)
        for name, weights in (("FITS", curves.fits), ("SHARE", curves.share)):
            report[label][name] = {key: round(value, 3) for key, value in weights.items()}
    print(json.dumps(report, indent=2))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "calibration.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        plot(report["vectors"], options.out / "calibration.png")


if __name__ == "__main__":
    main()
