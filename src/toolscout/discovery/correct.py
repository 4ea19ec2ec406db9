"""Typos: a word that no visible tool holds is read as the nearest word of a visible name, if one is near enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolscout.models import Candidates, Intent
from toolscout.words import query_terms, split_words

_MOST_WRONG = 4
_MIN_LETTERS = 4
_LONG = 8


def misspelt(intents: Sequence[Intent], candidates: Candidates) -> tuple[str, ...]:
    """Return the words that may be typos; where many are unknown, they are names and numbers, not typos."""
    whole = intents[0]
    unknown = {term for term, count in zip(candidates.terms, candidates.frequency.tolist(), strict=True) if count == 0}
    if not unknown:
        return ()
    words = (word for word in split_words(whole.text) if len(word) >= _MIN_LETTERS and word.isalpha())
    wrong = [word for word in words if unknown.intersection(query_terms(word))]
    return tuple(wrong) if len(wrong) <= _MOST_WRONG else ()


def correct_terms(intents: Sequence[Intent], wrong: Sequence[str], vocabulary: Sequence[str]) -> tuple[Intent, ...]:
    """Replace misspelt words where the vocabulary has a near one; one slip in a short word, two in a long one."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    nearest: dict[str, str] = {}
    for word in wrong:
        slips = 2 if len(word) >= _LONG else 1
        found = process.extract(word, vocabulary, scorer=OSA.distance, score_cutoff=slips, limit=5)
        likely = sorted((distance, other) for other, distance, _ in found if other[0] == word[0])
        if likely:
            nearest[query_terms(word)[0]] = query_terms(likely[0][1])[0]
    return tuple(
        replace(intent, terms=tuple(dict.fromkeys(nearest.get(term, term) for term in intent.terms)))
        for intent in intents
    )
