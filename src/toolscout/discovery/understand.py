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


def with_vectors(intents: Sequence[Intent], vectors: Mapping[str, FloatArray]) -> tuple[Intent, ...]:
    """Give each intent its vector."""
    return tuple(replace(intent, vector=vectors[intent.text]) for intent in intents)
