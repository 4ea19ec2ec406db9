"""Retrieval quality on a labelled set: the usual figures, with binary relevance."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, quantiles

from toolscout.errors import InputFileError

_ROW = 'a row is {"id", "query", "gold": [tool ids]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A query and the ids of the tools that answer it."""

    id: str
    query: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a ranker answered to a labelled query: tool ids, best first, and how long it took."""

    labelled: Labelled
    found: tuple[str, ...]
    took_ms: float


def read_queries(path: str | Path) -> list[Labelled]:
    """Read a queries.jsonl file; a bad line is an error, since a figure over half a file would mislead."""
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except OSError as error:
        raise InputFileError(f"{path} cannot be read: {error.strerror}", hint="check the path") from error
    except UnicodeDecodeError as error:
        raise InputFileError(f"{path} is not UTF-8", hint=_ROW) from error
    queries = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            gold = frozenset(map(str, row["gold"]))
            queries.append(Labelled(id=str(row["id"]), query=str(row["query"]), gold=gold))
        except (ValueError, KeyError, TypeError) as error:
            raise InputFileError(f"{path}:{number}: no labelled query: {error!r}", hint=_ROW) from error
    if not queries:
        raise InputFileError(f"{path} holds no query", hint=_ROW)
    return queries


def ndcg(found: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Return the normalized discounted cumulative gain of the first k."""
    gain = sum(1 / math.log2(place + 2) for place, item in enumerate(found[:k]) if item in gold)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(k, len(gold))))
    return gain / ideal if ideal else 0.0


def recall(found: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Return the share of the right tools among the first k."""
    return len(gold.intersection(found[:k])) / len(gold) if gold else 0.0


def reciprocal_rank(found: Sequence[str], gold: frozenset[str]) -> float:
    """Return 1 over the place of the first right tool."""
    return next((1 / place for place, item in enumerate(found, start=1) if item in gold), 0.0)


def summarize(outcomes: Sequence[Outcome], tools: int, k: int = 10) -> dict[str, float]:
    """Return the figures of a set of outcomes."""
    times = sorted(outcome.took_ms for outcome in outcomes)
    cuts = quantiles(times, n=100, method="inclusive") if len(times) > 1 else times * 99
    pairs = [(outcome.found, outcome.labelled.gold) for outcome in outcomes]
    figures: dict[str, float] = {f"ndcg@{k}": fmean(ndcg(found, gold, k) for found, gold in pairs)}
    for depth in sorted({1, 5, k}):
        figures[f"recall@{depth}"] = fmean(recall(found, gold, depth) for found, gold in pairs)
    figures["mrr"] = fmean(reciprocal_rank(found, gold) for found, gold in pairs)
    figures = {name: round(value, 4) for name, value in figures.items()}
    figures |= {"p50_ms": round(cuts[49], 3), "p95_ms": round(cuts[94], 3)}
    return figures | {"tools": tools, "queries": len(outcomes)}
