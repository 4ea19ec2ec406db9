"""Typos: a word that no visible tool holds is read as the nearest word of a visible name, if one is near enough."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolscout.models import Candidates, Intent
from toolscout.text import query_terms, split_words

_MOST_WRONG = 4
_MIN_LETTERS = 4
_SHORT = 6
_LONG = 8
_NAME = re.compile(r"(?<=[^.!?:\s]\s)[A-Z][a-z]+\b")
_LETTERS = re.compile(r"[^\W\d_]+")


def misspelt(intents: Sequence[Intent], candidates: Candidates) -> tuple[str, ...]:
    """Return the words that may be typos; where many are unknown, they are names and numbers, not typos."""
    whole = intents[0].text
    unknown = {term for term, count in zip(candidates.terms, candidates.frequency.tolist(), strict=True) if count == 0}
    if not unknown:
        return ()
    names = {word.lower() for word in _NAME.findall(whole)}
    words = (word for word in split_words(whole) if len(word) >= _MIN_LETTERS and word.isalpha() and word not in names)
    wrong = [word for word in words if unknown.intersection(query_terms(word))]
    return tuple(wrong) if len(wrong) <= _MOST_WRONG else ()


def correct_terms(intents: Sequence[Intent], wrong: Sequence[str], vocabulary: Sequence[str]) -> tuple[Intent, ...]:
    """Replace misspelt words where the vocabulary has a near one; one slip in a short word, two in a long one.

    In a short word another letter makes another word (shoe, show): only swapped, doubled and dropped letters are slips.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    nearest: dict[str, str] = {}
    for word in wrong:
        slips = 2 if len(word) >= _LONG else 1
        found = process.extract(word, vocabulary, scorer=OSA.distance, score_cutoff=slips, limit=5)
        likely = sorted((distance, other) for other, distance, _ in found if other[0] == word[0] and _slip(word, other))
        if likely:
            nearest[word] = likely[0][1]
    return tuple(_corrected(intent, nearest) for intent in intents)


def _slip(word: str, other: str) -> bool:
    return len(word) >= _SHORT or len(word) != len(other) or sorted(word) == sorted(other)


def _corrected(intent: Intent, nearest: Mapping[str, str]) -> Intent:
    stems = {query_terms(word)[0]: query_terms(other)[0] for word, other in nearest.items()}
    if stems.keys().isdisjoint(intent.terms):
        return intent
    text = _LETTERS.sub(lambda found: nearest.get(found[0].lower(), found[0]), intent.text)
    terms = tuple(dict.fromkeys(stems.get(term, term) for term in intent.terms))
    return replace(intent, text=text, terms=terms)
