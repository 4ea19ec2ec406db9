"""What a request asks for: its words, and its separate needs when it has several."""

from __future__ import annotations

from toolscout.discovery.clauses import split_clauses
from toolscout.models import Intent, Query
from toolscout.words import query_terms


def understand(query: Query) -> tuple[Intent, ...]:
    """Return the whole request first, then one intent for each clause; the documented rankers know only the whole."""
    text = query.text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair would stop any tokenizer
    whole = Intent(text=text, terms=tuple(query_terms(text)))
    if query.ranker != "hybrid":
        return (whole,)
    clauses = split_clauses(text)
    return (whole, *(Intent(text=clause, terms=tuple(query_terms(clause))) for clause in clauses))
