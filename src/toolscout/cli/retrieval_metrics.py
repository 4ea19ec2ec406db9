"""Retrieval quality on a labelled set: nDCG, recall and MRR with binary relevance."""

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
class LabelledQuery:
    """A query and the ids of the right tools."""

    id: str
    query: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOutcome:
    """The answer of a ranker to a labelled query: tool ids, best first, and the time it took."""

    labelled: LabelledQuery
    tool_ids: tuple[str, ...]
    took_ms: float


def read_queries(path: str | Path) -> list[LabelledQuery]:
    """Read a queries.jsonl file; a bad line is an error, since figures over half a file would mislead."""
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
            queries.append(LabelledQuery(id=str(row["id"]), query=str(row["query"]), gold=gold))
        except (ValueError, KeyError, TypeError) as error:
            raise InputFileError(f"{path}:{number}: not a labelled query: {error!r}", hint=_ROW) from error
    if not queries:
        raise InputFileError(f"{path} contains no queries", hint=_ROW)
    return queries


def ndcg(tool_ids: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Return the normalized discounted cumulative gain of the first k tools."""
    gain = sum(1 / math.log2(rank + 2) for rank, item in enumerate(tool_ids[:k]) if item in gold)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(k, len(gold))))
    return gain / ideal if ideal else 0.0


def recall(tool_ids: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Return the share of right tools that are among the first k."""
    return len(gold.intersection(tool_ids[:k])) / len(gold) if gold else 0.0


def reciprocal_rank(tool_ids: Sequence[str], gold: frozenset[str]) -> float:
    """Return 1 divided by the rank of the first right tool."""
    return next((1 / rank for rank, item in enumerate(tool_ids, start=1) if item in gold), 0.0)


def summarize(outcomes: Sequence[QueryOutcome], tools: int, k: int = 10) -> dict[str, float]:
    """Return the figures of a set of outcomes, as `toolscout eval` prints them."""
    times = sorted(outcome.took_ms for outcome in outcomes)
    cuts = quantiles(times, n=100, method="inclusive") if len(times) > 1 else times * 99
    pairs = [(outcome.tool_ids, outcome.labelled.gold) for outcome in outcomes]
    figures: dict[str, float] = {f"ndcg@{k}": fmean(ndcg(tool_ids, gold, k) for tool_ids, gold in pairs)}
    for depth in sorted({1, 5, k}):
        figures[f"recall@{depth}"] = fmean(recall(tool_ids, gold, depth) for tool_ids, gold in pairs)
    figures["mrr"] = fmean(reciprocal_rank(tool_ids, gold) for tool_ids, gold in pairs)
    figures = {name: round(value, 4) for name, value in figures.items()}
    figures |= {"p50_ms": round(cuts[49], 3), "p95_ms": round(cuts[94], 3)}
    return figures | {"tools": tools, "queries": len(outcomes)}
