"""Computes figures from hits: means with confidence intervals, paired differences, slices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from toolscout.retrieval_metrics import LabelledQuery, QueryOutcome, ndcg, recall, summarize
from toolscout.text import query_terms, terms

SAMPLES = 1_000
Floats = npt.NDArray[np.float64]

OVERLAPS = ((0.0, 0.34, "few shared words"), (0.34, 0.67, "some"), (0.67, 1.01, "most"))


def some(queries: list[LabelledQuery], most: int) -> list[LabelledQuery]:
    """Take at most so many requests, evenly from the whole file."""
    return queries if len(queries) <= most else [queries[place * len(queries) // most] for place in range(most)]


def gains(outcomes: Sequence[QueryOutcome]) -> Floats:
    """Return the nDCG@10 of each request."""
    return np.array([ndcg(item.tool_ids, item.labelled.gold, 10) for item in outcomes])


def interval(values: Floats, *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the mean by resampling requests."""
    if len(values) < 2:
        return (float(values.mean()), float(values.mean())) if len(values) else (0.0, 0.0)
    random = np.random.default_rng(seed)
    means = values[random.integers(0, len(values), (SAMPLES, len(values)))].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def figures_of(outcomes: Sequence[QueryOutcome], tools: int) -> dict[str, Any]:
    """Return the usual figures, the interval of nDCG@10, and how often every right tool is among the first ten."""
    low, high = interval(gains(outcomes))
    covered = np.mean([item.labelled.gold <= set(item.tool_ids[:10]) for item in outcomes])
    spread = {"low": round(low, 4), "high": round(high, 4), "covered@10": round(float(covered), 4)}
    return summarize(outcomes, tools) | spread


def difference(one: Sequence[QueryOutcome], other: Sequence[QueryOutcome]) -> dict[str, float]:
    """Compare two rankers request by request, over the requests that both answered."""
    theirs = {item.labelled.id: item for item in other}
    pairs = [(item, theirs[item.labelled.id]) for item in one if item.labelled.id in theirs]
    gap = gains([mine for mine, _ in pairs]) - gains([their for _, their in pairs])
    low, high = interval(gap)
    return {"ndcg@10": round(float(gap.mean()), 4), "low": round(low, 4), "high": round(high, 4), "queries": len(pairs)}


def overlap(item: LabelledQuery, tools: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the share of the request's words that the best gold tool's name and description hold."""
    asked = set(query_terms(item.query))
    shares = []
    for gold in item.gold & tools.keys():
        own = set(terms(f"{tools[gold]['name']} {tools[gold].get('description') or ''}"))
        shares.append(len(asked & own) / max(len(asked), 1))
    return max(shares, default=0.0)


def by_overlap(item: LabelledQuery, tools: Mapping[str, Mapping[str, Any]]) -> str:
    """Name the slice of lexical overlap."""
    share = overlap(item, tools)
    return next(label for low, high, label in OVERLAPS if low <= share < high)


def by_needs(item: LabelledQuery, tools: Mapping[str, Mapping[str, Any]]) -> str:  # noqa: ARG001 - one shape for all slices
    """Name the slice of needs: how many tools are right."""
    return {0: "none", 1: "1 need", 2: "2 needs"}.get(len(item.gold), "3 and more")


def by_language(item: LabelledQuery, tools: Mapping[str, Mapping[str, Any]]) -> str:  # noqa: ARG001
    """Name the slice of script: English shows as ASCII; what has other letters is counted apart."""
    foreign = sum(letter.isalpha() and not letter.isascii() for letter in item.query)
    return "other scripts and accents" if foreign > 0.02 * len(item.query) else "plain ASCII"


SLICES: dict[str, Callable[[LabelledQuery, Mapping[str, Mapping[str, Any]]], str]] = {
    "overlap": by_overlap,
    "needs": by_needs,
    "language": by_language,
}


def sliced(outcomes: Sequence[QueryOutcome], tools: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return nDCG@10, its interval and the number of requests for each part of each slice."""
    found: dict[str, dict[str, Any]] = {}
    for name, label_of in SLICES.items():
        parts: dict[str, list[QueryOutcome]] = {}
        for item in outcomes:
            parts.setdefault(label_of(item.labelled, tools), []).append(item)
        found[name] = {
            label: {
                "ndcg@10": round(float(gains(part).mean()), 4),
                "recall@5": round(float(np.mean([recall(o.tool_ids, o.labelled.gold, 5) for o in part])), 4),
                "low": round(interval(gains(part))[0], 4),
                "high": round(interval(gains(part))[1], 4),
                "queries": len(part),
            }
            for label, part in sorted(parts.items())
        }
    return found
