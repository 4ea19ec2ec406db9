"""Fit `toolscout.discovery.calibration`, and measure it on sets that were left out of the fitting.

    python training/export_base.py --out build/base          # the judge of equivalents: the untuned model
    TOOLSCOUT_BENCH=../shared/bench python training/calibrate.py --judge build/base --out benchmarks/results

Prints the constants to copy, and writes `calibration.json` and the reliability plot `calibration.png`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corpus import DEVELOPMENT, PEOPLE, hashes
from trials import Texts, Trial, make_trials

FACTS = ("strength", "lead", "cover", "terms", "server", "elsewhere", "contradicts")
BY_WORDS = ("strength", "cover", "contradicts")
SETS = (*DEVELOPMENT, PEOPLE)
WEIGHT = {
    "fits": 1.0,
    "near": 0.3,
    "foreign": 0.25,
    "removed": 0.1,
    **{f"fits-{size}": 0.15 for size in (12, 40, 150)},
    **{f"none-{size}": 0.05 for size in (12, 40, 150)},
    "fits-4000": 0.2,
}
"""How much a kind counts in the fitting, whatever the number of its trials. What is not here is only measured."""
STRONG, LIKELY = (0.7, 0.75, 0.8, 0.83, 0.86), (0.16, 0.19, 0.22, 0.24, 0.26, 0.28, 0.3)
PENALTY = 1.0
BINS = 10

Curve = Callable[[Trial], float]


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


def fit(trials: Sequence[Trial], facts: Sequence[str]) -> dict[str, float]:
    """Fit whether the first hit is right."""
    used, weight = _weighted(trials)
    rows = np.array([[trial.facts[name] for name in facts] for trial in used])
    found = logistic(rows, np.array([float(trial.right[0]) for trial in used]), weight)
    return dict(zip(("intercept", *facts), found.tolist(), strict=True))


def likely(weights: Mapping[str, float], trial: Trial) -> float:
    """Return how likely the first hit of a trial is right."""
    return float(_curve(sum(value * trial.facts.get(name, 1.0) for name, value in weights.items())))


def fit_decay(trials: Sequence[Trial], weights: Mapping[str, float]) -> tuple[float, float]:
    """Return what later hits are worth: the share and the power that make what was seen most likely."""
    used, weight = _weighted([trial for trial in trials if trial.answerable])
    first = [likely(weights, trial) for trial in used]

    def value(later: float, decay: float) -> float:
        total = 0.0
        for trial, one, share in zip(used, weight, first, strict=True):
            scores = np.clip(share * later * np.exp(decay * trial.gap[1:]), 1e-6, 1 - 1e-6)
            total += one * float(np.log(np.where(trial.right[1:], scores, 1 - scores)).sum())
        return total

    choices = [(later, decay) for later in (0.5, 0.6, 0.7, 0.8, 0.9) for decay in (3.0, 4.0, 5.0, 6.0, 7.0, 9.0, 12.0)]
    return max(choices, key=lambda choice: value(*choice))


def _weighted(trials: Sequence[Trial]) -> tuple[list[Trial], np.ndarray]:
    counts = Counter((trial.set, trial.kind) for trial in trials)
    used = [trial for trial in trials if trial.kind in WEIGHT and len(trial.right)]
    return used, np.array([500 * WEIGHT[trial.kind] / counts[trial.set, trial.kind] for trial in used])


def left_out(trials: Sequence[Trial], facts: Sequence[str]) -> np.ndarray:
    """Return for each trial how likely its first hit is right, by a curve that has not seen its set.

    Requests that nothing fits are known for one set only: there, each half is judged by a curve fitted on the other.
    """
    score = np.zeros(len(trials))
    for name in SETS:
        weights = fit([trial for trial in trials if trial.set != name], facts)
        score[[trial.set == name for trial in trials]] = [likely(weights, t) for t in trials if t.set == name]
    everything = fit(trials, facts)  # which has seen no near miss of other servers: they are only measured
    for place, trial in enumerate(trials):
        if trial.kind == "near-others":
            score[place] = likely(everything, trial)
    for half in (0, 1):
        seen = [t for place, t in enumerate(trials) if not (t.kind in ("near", "foreign") and place % 2 == half)]
        weights = fit([t for t in seen if t.set != PEOPLE or t.kind in ("near", "foreign")], facts)
        for place, trial in enumerate(trials):
            if trial.set == PEOPLE and trial.kind in ("near", "foreign") and place % 2 == half:
                score[place] = likely(weights, trial)
    return score


def measure(trials: Sequence[Trial], facts: Sequence[str]) -> dict[str, Any]:
    """Measure the words and the scores on sets that were left out of the fitting."""
    score = left_out(trials, facts)
    right = np.array([bool(trial.right[0]) for trial in trials])
    kind, name = np.array([trial.kind for trial in trials]), np.array([trial.set for trial in trials])

    def share(chosen: np.ndarray, of: np.ndarray) -> float:
        return round(float(chosen[of].mean()), 3) if of.any() else float("nan")

    fits = kind == "fits"
    strong = {
        f"{least:.2f}": {
            one: [share(right, fits & (name == one) & (score >= least)), share(score >= least, fits & (name == one))]
            for one in SETS
        }
        for least in STRONG
    }
    weak = {
        f"{least:.2f}": {
            "near": share(score < least, kind == "near"),
            "foreign": share(score < least, (kind == "foreign") & (name == PEOPLE)),
            "near, train_people": share(score < least, kind == "near-others"),
            "foreign, six sets": share(score < least, (kind == "foreign") & (name != PEOPLE)),
            **{one: share(score < least, fits & (name == one)) for one in SETS},
        }
        for least in LIKELY
    }
    seen = fits | (kind == "near") | ((kind == "foreign") & (name == PEOPLE))
    bins = np.minimum((score * BINS).astype(int), BINS - 1)
    parts = [seen & (bins == one) for one in range(BINS)]
    return {
        "strong: [right, share of the answerable]": strong,
        "best hit weak": weak,
        "calibration error": round(
            float(
                sum(
                    part.sum() / seen.sum() * abs(score[part].mean() - right[part].mean())
                    for part in parts
                    if part.any()
                )
            ),
            3,
        ),
        "reliability": [
            [round(float(score[part].mean()), 3), round(float(right[part].mean()), 3), int(part.sum())]
            for part in parts
            if part.any()
        ],
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
    axes.set_title(f"each set left out of the fitting: error {measured['calibration error']:.3f}", fontsize=10)
    figure.tight_layout()
    figure.savefig(target, dpi=120)


def main() -> None:
    """Fit, measure, print the constants, write the results."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--judge", type=Path, required=True, help="a model folder made by export_base.py, untuned")
    parser.add_argument("--cache", type=Path, default=Path("build/calibrate"), help="vectors of earlier runs")
    parser.add_argument("--out", type=Path, default=None, help="folder for calibration.json and calibration.png")
    options = parser.parse_args()
    texts = Texts(options.cache, options.judge)
    results: dict[str, Any] = {}
    for label, facts in (("with vectors", FACTS), ("by words alone", BY_WORDS)):
        trials = [trial for trial in make_trials(texts, by_words=facts is BY_WORDS) if len(trial.right)]
        weights = fit(trials, facts)
        later, decay = fit_decay(trials, weights)
        results[label] = measure(trials, facts)
        print(label, {name: round(value, 3) for name, value in weights.items()}, "later", later, "decay", decay)
        print(json.dumps(results[label], indent=1), flush=True)
    if options.out:
        results["data"] = dict(hashes(SETS))
        text = json.dumps(results, indent=1)
        (options.out / "calibration.json").write_text(text + "\n", encoding="utf-8")
        plot(results["with vectors"], options.out / "calibration.png")


if __name__ == "__main__":
    main()
