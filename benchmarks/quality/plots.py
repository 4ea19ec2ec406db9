"""The plots of a quality run: rankers by set with their intervals, and what the slices cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.data import RESULTS
from benchmarks.quality.report import pool

if TYPE_CHECKING:
    from benchmarks.quality.__main__ import Measured


def draw(name: str, measured: Measured) -> None:
    """Draw both plots into the results folder."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    _rankers(pyplot, measured.rankers)
    pyplot.savefig(RESULTS / f"{name}.png", dpi=130)
    pyplot.close()
    _slices(pyplot, measured)
    pyplot.savefig(RESULTS / f"{name}-slices.png", dpi=130)
    pyplot.close()


def _rankers(pyplot: Any, rankers: dict[str, dict[str, Any]]) -> None:
    sets = list(dict.fromkeys(name for found in rankers.values() for name in found))
    figure, axes = pyplot.subplots(figsize=(max(6.0, 1.9 * len(sets)), 4.2))
    width = 0.84 / max(len(rankers), 1)
    colours = pyplot.get_cmap("tab10")
    for number, (ranker, found) in enumerate(rankers.items()):
        known = [place for place, name in enumerate(sets) if name in found]
        rows = [found[sets[place]] for place in known]
        at = [place + (number - (len(rankers) - 1) / 2) * width for place in known]
        error = [[row["ndcg@10"] - row["low"] for row in rows], [row["high"] - row["ndcg@10"] for row in rows]]
        axes.bar(at, [row["ndcg@10"] for row in rows], width, label=ranker, color=colours(number % 10), yerr=error,
                 error_kw={"elinewidth": 0.7, "ecolor": "#333333"})  # fmt: skip
    axes.set_xticks(range(len(sets)), sets)
    axes.set_ylim(0, 1)
    axes.set_ylabel("nDCG@10, with its 95 % interval")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    figure.legend(loc="upper center", ncols=min(5, max(len(rankers), 1)), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.9 if len(rankers) > 5 else 0.94))


def _slices(pyplot: Any, measured: Measured) -> None:
    panels = ["overlap", "needs", *(["size"] if measured.sizes else [])]
    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(4.3 * len(panels), 4.2), sharey=True, squeeze=False)
    colours = pyplot.get_cmap("tab10")
    for axes, panel in zip(all_axes[0], panels, strict=True):
        for number, ranker in enumerate(measured.rankers):
            if panel == "size":
                found = _by_size(measured.sizes.get(ranker, {}))
            else:
                found = {label: value for label, (value, _) in pool(measured.slices[ranker], panel).items()}
            if found:
                axes.plot(list(found), list(found.values()), marker="o", color=colours(number % 10), label=ranker)
        axes.set_title({"overlap": "shared words", "needs": "tools that are right", "size": "distractors"}[panel])
        axes.margins(x=0.12)
        axes.grid(alpha=0.3)
    all_axes[0][0].set_ylabel("nDCG@10, all sets")
    all_axes[0][0].set_ylim(0, 1)
    handles, labels = all_axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=min(10, max(len(labels), 1)), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.94))


def _by_size(sets: dict[str, Any]) -> dict[str, float]:
    """Return the mean of the sets for each size that all of them have."""
    labels = [
        label for label in ("own tools", "+ 4,000", "all") if sets and all(label in found for found in sets.values())
    ]
    return {label: sum(found[label]["ndcg@10"] for found in sets.values()) / len(sets) for label in labels}
