"""What a request asks for: its words, and its separate needs when it has several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from toolscout.discovery.clauses import split_clauses
from toolscout.discovery.foreign import to_english
from toolscout.discovery.refusals import without_refusals
from toolscout.models import Intent, Query
from toolscout.text import query_terms

if TYPE_CHECKING:
    from toolscout.models import FloatArray


def understand(query: Query) -> tuple[Intent, ...]:
    """Return the whole request first, then one intent for each clause; the documented rankers know only the whole.

    A request in another language is read as English; as it was written, it is an intent beside that.
    """
    if query.ranker != "hybrid":
        return (_intent(query.text),)
    if english := to_english(query.text):
        return (_intent(english), _intent(english), _intent(query.text))
    wanted = without_refusals(query.text)
    return (_intent(wanted), *map(_intent, split_clauses(wanted)))


def _intent(text: str) -> Intent:
    return Intent(text=text, terms=tuple(query_terms(text)))


def with_vectors(intents: Sequence[Intent], vectors: Mapping[str, FloatArray]) -> tuple[Intent, ...]:
    """Give each intent its vector."""
    return tuple(replace(intent, vector=vectors[intent.text]) for intent in intents)
