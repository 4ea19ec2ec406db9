"""What a request asks for: its words, and its separate needs when it has several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from toolscout.discovery.clauses import split_clauses
from toolscout.models import Intent, Query
from toolscout.words import query_terms

if TYPE_CHECKING:
    from toolscout.models import FloatArray


def understand(query: Query) -> tuple[Intent, ...]:
    """Return the whole request first, then one intent for each clause; the documented rankers know only the whole."""
    whole = Intent(text=query.text, terms=tuple(query_terms(query.text)))
    if query.ranker != "hybrid":
        return (whole,)
    clauses = split_clauses(query.text)
    return (whole, *(Intent(text=clause, terms=tuple(query_terms(clause))) for clause in clauses))


def texts_to_embed(intents: Sequence[Intent]) -> list[str]:
    """Return what needs a vector: the clauses where there are some, as their mean stands for the whole."""
    return [intent.text for intent in intents[1:] or intents]


def with_vectors(intents: Sequence[Intent], vectors: Mapping[str, FloatArray]) -> tuple[Intent, ...]:
    """Give each intent its vector."""
    import numpy as np

    if len(intents) == 1:
        return (replace(intents[0], vector=vectors[intents[0].text]),)
    clauses = [replace(intent, vector=vectors[intent.text]) for intent in intents[1:]]
    total: FloatArray = np.sum([vectors[intent.text] for intent in clauses], axis=0, dtype=np.float32)
    unit: FloatArray = total / np.float32(max(float(np.linalg.norm(total)), 1e-9))
    return (replace(intents[0], vector=unit), *clauses)
