"""Simple baselines: BM25, the cosine of all-MiniLM-L6-v2, and their reciprocal rank fusion.

MiniLM's weights are the published ones, exported by `training/export_base.py --out build/base`.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolscout.embedding.builtin import BuiltinEmbedder

MINILM = Path("build/base")
K1, B, RRF = 1.5, 0.75, 60
_WORD = re.compile(r"\w+")

Rank = Callable[[str], list[str]]
"""Request in, ids out, best first."""


def text_of(tool: dict[str, Any]) -> str:
    """Write a tool as most people embed it: its name, then its description."""
    return f"{tool['name']}: {tool.get('description') or ''}"


def ids_of(tools: Sequence[dict[str, Any]]) -> list[str]:
    """Return each tool's id, or else its key."""
    return [str(tool.get("id") or f"{tool.get('server') or 'local'}__{tool['name']}") for tool in tools]


def bm25(tools: Sequence[dict[str, Any]], depth: int = 10) -> Rank:
    """Index lower-cased words, nothing split, nothing stemmed."""
    ids, texts = ids_of(tools), [Counter(_WORD.findall(text_of(tool).lower())) for tool in tools]
    average = sum(sum(counts.values()) for counts in texts) / max(len(texts), 1)
    postings: dict[str, list[tuple[int, float]]] = {}
    for row, counts in enumerate(texts):
        norm = K1 * (1 - B + B * sum(counts.values()) / average)
        for word, count in counts.items():
            postings.setdefault(word, []).append((row, count * (K1 + 1) / (count + norm)))

    def rank(request: str) -> list[str]:
        scores: Counter[int] = Counter()
        for word in set(_WORD.findall(request.lower())):
            found = postings.get(word, [])
            idf = math.log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
            for row, weight in found:
                scores[row] += idf * weight
        return [ids[row] for row in sorted(scores, key=lambda row: (-scores[row], row))[:depth]]

    return rank


def minilm(tools: Sequence[dict[str, Any]], depth: int = 10) -> Rank:
    """Embed every tool with the published weights; rank by cosine."""
    if not (MINILM / "model.onnx").exists():
        raise FileNotFoundError(f"no weights in {MINILM}; `python training/export_base.py --out {MINILM}` makes them")
    model = BuiltinEmbedder(folder=MINILM, threads=1)
    ids, matrix = ids_of(tools), np.stack([_vector(model, text_of(tool)) for tool in tools])

    def rank(request: str) -> list[str]:
        return [
            ids[row]
            for row in np.argsort(-(matrix @ model._embed_one(request, 128, 1)), kind="stable")[:depth].tolist()
        ]

    return rank


def rrf(tools: Sequence[dict[str, Any]], depth: int = 10) -> Rank:
    """Add up 1 / (60 + place) of both rankings' first fifty."""
    parts = (bm25(tools, 50), minilm(tools, 50))

    def rank(request: str) -> list[str]:
        scores: Counter[str] = Counter()
        for part in parts:
            for place, item in enumerate(part(request), start=1):
                scores[item] += 1 / (RRF + place)
        return [item for item, _ in scores.most_common(depth)]

    return rank


PLAIN = {"bm25": bm25, "minilm": minilm, "rrf": rrf}


def answers(name: str, tools: Sequence[dict[str, Any]], requests: Sequence[str]) -> dict[str, Any]:
    """Rank every request; the same shape as a peer's answer."""
    rank = PLAIN[name](tools)
    found, times = [], []
    for request in requests:
        started = time.perf_counter()
        found.append(rank(request))
        times.append((time.perf_counter() - started) * 1_000)
    said = {"bm25": f"k1 {K1}, b {B}", "minilm": "all-MiniLM-L6-v2, int8", "rrf": f"bm25 + minilm, k {RRF}"}
    return {"version": said[name], "found": found, "took_ms": times}


_vectors: dict[tuple[str, str], Any] = {}


def _vector(model: BuiltinEmbedder, text: str) -> Any:
    key = (model.model_id, text)
    if key not in _vectors:
        _vectors[key] = model._embed_one(text, 128, 1)
    return _vectors[key]
