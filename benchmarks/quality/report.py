"""The tables of a quality run, in Markdown."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.data import machine, markdown

if TYPE_CHECKING:
    from benchmarks.quality.__main__ import Measured

BEST_SINGLE = {
    "azure_mcp": 0.942,
    "livemcp_step": 0.786,
    "metatool_single": 0.723,
    "stabletoolbench": 0.747,
    "sealtools": 0.939,
    "bfcl_synth": 0.856,
}
"""The best of BM25, BM25F, MiniLM, RRF and weighted sums, with and without clauses, on each set."""


def written(name: str, lead: str, measured: Measured) -> str:
    """Write the whole report."""
    text = [f"# Retrieval quality: {name}" if name != "quality" else "# Retrieval quality", ""]
    text += [f"`python -m benchmarks.quality`; {machine()}", ""]
    text += ["Default settings, no threshold. Intervals are 95 %, by resampling requests.", ""]
    text += [f"`{lead}`:", "", _lead(measured.lead), ""]
    if len(measured.rankers) > 1:
        text += [
            "nDCG@10 by ranker, on the same requests (their number; graph-tool-call on fewer of them):",
            "",
            _rankers(measured.rankers),
            "",
        ]
        text += [f"`{lead}` against each, paired over the requests that both answered (nDCG@10, interval):", ""]
        text += [_against(measured.against), "", f"![by ranker]({name}.png)", ""]
    text += ["## Slices", "", f"![slices]({name}-slices.png)", ""]
    for slice_name, title in (
        ("overlap", "By how many of the request's words the right tool's name and description hold"),
        ("needs", "By how many tools are right"),
        ("language", "By script of the request"),
    ):
        text += [f"{title}: nDCG@10 (requests), all sets pooled:", "", _slice(measured.slices, slice_name), ""]
    if measured.sizes:
        text += ["## Among distractors", "", "nDCG@10 / recall@5 (equal ids and texts dropped):", ""]
        text += [_sizes(measured.sizes), ""]
    text += ["## Who was measured", ""]
    text += [f"- {ranker}: {version}" for ranker, version in measured.versions.items()]
    text += [f"- not measured: {line}" for line in measured.missing]
    return "\n".join(text)


def _lead(figures: dict[str, Any]) -> str:
    known = all(name in BEST_SINGLE for name in figures)
    head = ["set", "tools", "requests", "nDCG@10", "interval", *(["best single"] if known else [])]
    head += ["recall@1", "recall@5", "recall@10", "all of them in 10", "mrr"]
    body = []
    for name, row in figures.items():
        cells = [
            name,
            row["tools"],
            row["queries"],
            f"**{row['ndcg@10']:.3f}**",
            f"{row['low']:.3f} to {row['high']:.3f}",
        ]
        cells += [f"{BEST_SINGLE[name]:.3f}"] if known else []
        shown = ("recall@1", "recall@5", "recall@10", "covered@10", "mrr")
        body.append([*cells, *(f"{row[key]:.3f}" for key in shown)])
    mean = [
        f"{fmean(row[key] for row in figures.values()):.3f}"
        for key in ("ndcg@10", "recall@1", "recall@5", "recall@10", "covered@10", "mrr")
    ]
    best = [f"{fmean(BEST_SINGLE[name] for name in figures):.3f}"] if known else []
    body.append(["mean", "", "", f"**{mean[0]}**", "", *best, *mean[1:]])
    return markdown(head, body)


def _rankers(rankers: dict[str, dict[str, Any]]) -> str:
    sets = list(dict.fromkeys(name for found in rankers.values() for name in found))
    body = []
    for ranker, found in rankers.items():
        cells = [f"{found[name]['ndcg@10']:.3f} ({found[name]['queries']})" if name in found else "-" for name in sets]
        whole = f"**{fmean(found[name]['ndcg@10'] for name in sets):.3f}**" if len(found) == len(sets) else "-"
        times = f"{fmean(row['p50_ms'] for row in found.values()):.1f}"
        body.append([ranker, *cells, whole, times])
    return markdown(["ranker (requests)", *sets, "mean", "p50 ms"], body)


def _against(against: dict[str, dict[str, Any]]) -> str:
    sets = list(dict.fromkeys(name for found in against.values() for name in found))
    body = [
        [ranker]
        + [
            f"{found[name]['ndcg@10']:+.3f} ({found[name]['low']:+.3f} to {found[name]['high']:+.3f})"
            if name in found
            else "-"
            for name in sets
        ]
        for ranker, found in against.items()
    ]
    return markdown(["against", *sets], body)


def _slice(slices: dict[str, dict[str, Any]], name: str) -> str:
    pooled = {ranker: pool(found, name) for ranker, found in slices.items()}
    labels = list(dict.fromkeys(label for found in pooled.values() for label in found))
    body = [
        [ranker, *(f"{found[label][0]:.3f} ({found[label][1]})" if label in found else "-" for label in labels)]
        for ranker, found in pooled.items()
    ]
    return markdown(["ranker", *labels], body)


def pool(found: dict[str, Any], name: str) -> dict[str, tuple[float, int]]:
    """Put the parts of a slice together over all sets: mean nDCG@10 and number of requests."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for slices in found.values():
        for label, part in slices[name].items():
            parts.setdefault(label, []).append(part)
    order = {"few shared words": 0, "some": 1, "most": 2}
    return {
        label: (
            sum(part["ndcg@10"] * part["queries"] for part in rows) / sum(part["queries"] for part in rows),
            sum(part["queries"] for part in rows),
        )
        for label, rows in sorted(parts.items(), key=lambda pair: (order.get(pair[0], 9), pair[0]))
    }


def _sizes(sizes: dict[str, dict[str, Any]]) -> str:
    body = []
    for ranker, found in sizes.items():
        for name, parts in found.items():
            own = parts.get("own tools", {}).get("ndcg@10")
            for label, row in parts.items():
                lost = f"{row['ndcg@10'] - own:+.3f}" if own is not None else ""
                cells = [
                    ranker,
                    name,
                    label,
                    row["tools"],
                    row["queries"],
                    f"{row['ndcg@10']:.3f} / {row['recall@5']:.3f}",
                ]
                body.append([*cells, f"{row['low']:.3f} to {row['high']:.3f}", lost])
    return markdown(
        ["ranker", "set", "distractors", "tools", "requests", "nDCG@10 / recall@5", "interval", "change"], body
    )
