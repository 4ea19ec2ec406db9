"""Retrieval quality on a labelled set: the order of the hits, and what a user is shown with default settings."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, quantiles

from toolscout.errors import InputFileError
from toolscout.models import Fit

SHOWN = 5
"""How many hits an agent is shown by default."""
_ROW = 'a row is {"id", "query", "gold": [tool ids]}; "also": [tool ids] and "style" are optional'


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledQuery:
    """A query and the ids of the right tools. No right tool means that nothing fits."""

    id: str
    query: str
    gold: frozenset[str]
    also: frozenset[str] = frozenset()
    """Tools that serve as well."""
    style: str = ""
    """How the query is written, such as `paraphrase`. Figures can be sliced by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOutcome:
    """The answer of a ranker to a labelled query: tool ids, best first, and the time it took."""

    labelled: LabelledQuery
    tool_ids: tuple[str, ...]
    took_ms: float
    fit: Fit | None = None
    """How sure the first hit is. None without hits, and for rankers that are not calibrated."""

    def is_right(self, tool_id: str, *, lenient: bool = True) -> bool:
        """Tell whether a tool is right. If lenient, one that serves as well is."""
        return tool_id in self.labelled.gold or (lenient and tool_id in self.labelled.also)


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
            queries.append(
                LabelledQuery(
                    id=str(row["id"]),
                    query=str(row["query"]),
                    gold=frozenset(map(str, row["gold"])),
                    also=frozenset(map(str, row.get("also") or ())),
                    style=str(row.get("style") or ""),
                )
            )
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


def count_also(outcome: QueryOutcome) -> tuple[str, ...]:
    """Return the hits with those that serve as well counted as right: each stands for a right tool that is missing."""
    missing = [tool for tool in sorted(outcome.labelled.gold) if tool not in outcome.tool_ids]
    return tuple(missing.pop(0) if tool in outcome.labelled.also and missing else tool for tool in outcome.tool_ids)


def summarize(outcomes: Sequence[QueryOutcome], tools: int, k: int = 10, *, lenient: bool = False) -> dict[str, float]:
    """Return the figures of a set of outcomes, as `toolscout eval` prints them.

    The order is measured on the queries that have a right tool. `shown@5` is the share of them with a right tool among
    the first five hits, `empty` the share that gets no hit at all. `declined` is the share of the other queries whose
    hits are all called weak, or that get none. `strong_right` is the share of strong first hits that are right.
    """
    answerable = [outcome for outcome in outcomes if outcome.labelled.gold]
    others = [outcome for outcome in outcomes if not outcome.labelled.gold]
    figures: dict[str, float] = {}
    if answerable:
        pairs = [(count_also(item) if lenient else item.tool_ids, item.labelled.gold) for item in answerable]
        figures[f"ndcg@{k}"] = fmean(ndcg(tool_ids, gold, k) for tool_ids, gold in pairs)
        for depth in sorted({1, 5, k}):
            figures[f"recall@{depth}"] = fmean(recall(tool_ids, gold, depth) for tool_ids, gold in pairs)
        figures["mrr"] = fmean(reciprocal_rank(tool_ids, gold) for tool_ids, gold in pairs)
        figures[f"shown@{SHOWN}"] = fmean(
            any(item.is_right(tool, lenient=lenient) for tool in item.tool_ids[:SHOWN]) for item in answerable
        )
        figures["empty"] = fmean(not item.tool_ids for item in answerable)
    if others:
        figures["declined"] = fmean(item.fit not in ("strong", "likely") for item in others)
    if strong := [item for item in outcomes if item.fit == "strong"]:
        figures["strong_right"] = fmean(item.is_right(item.tool_ids[0]) for item in strong)
    figures = {name: round(value, 4) for name, value in figures.items()}
    times = sorted(outcome.took_ms for outcome in outcomes)
    cuts = quantiles(times, n=100, method="inclusive") if len(times) > 1 else times * 99
    figures |= {"p50_ms": round(cuts[49], 3), "p95_ms": round(cuts[94], 3)}
    return figures | {"tools": tools, "queries": len(outcomes)}
