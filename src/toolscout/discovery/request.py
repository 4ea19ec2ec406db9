"""Reading a request: what it asks for becomes one value that travels through all stages of a search."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolscout.discovery.clauses import split_clauses
from toolscout.discovery.long_messages import condense
from toolscout.discovery.negation import split_negations
from toolscout.discovery.translation import to_english
from toolscout.models import LOCAL, Candidates, Intent, Query
from toolscout.text import names_server, query_terms, split_words, title_words
from toolscout.verbs import actions

if TYPE_CHECKING:
    from toolscout.models import BoolArray, FloatArray

_SHORT_FORMS = (
    (re.compile(r"\bMR(?=s?\b)"), "merge request"),
    (re.compile(r"\bPR(?=s?\b)"), "pull request"),
    (re.compile(r"\bgh\b"), "github"),
    (re.compile(r"\bproj\b", re.IGNORECASE), "project"),
    (re.compile(r"\bmsg(?=s?\b)", re.IGNORECASE), "message"),
    (re.compile(r"\breq(?=s\b)", re.IGNORECASE), "request"),
    (re.compile(r"\bwhat(?:'s| is)? (?:the )?time is it\b|\bwhat(?:'s| is) the time\b", re.IGNORECASE), "current time"),
)
_VOWELS = re.compile("[aeiou]")
_MAX_TYPOS = 4
_MIN_LETTERS = 4
_SHORT_WORD = 6
_LONG_WORD = 8
_PROPER_NAME = re.compile(r"(?<=[^.!?:\s]\s)[A-Z][a-z]+\b")
_LETTERS = re.compile(r"[^\W\d_]+")
_OWN_SHARE = 0.5
"""A word of a server's name tells it if this share of the candidates that hold the word are its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderstoodRequest:
    """What was understood of a request. Each stage of a search returns a new one."""

    text: str
    """The request as it was written."""
    whole: Intent
    """The whole request as it is searched for: in English, without what it rules out, with typos corrected."""
    clauses: tuple[Intent, ...] = ()
    """The separate needs of a request that has several. Empty if it has only one."""
    original: Intent | None = None
    """The request as it was written, if `whole` is its translation."""
    excluded: tuple[str, ...] = ()
    """The parts that the request rules out."""
    corrections: Mapping[str, str] = field(default_factory=dict)
    """Misspelt word -> the word that is searched for instead."""
    named_servers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The text of an intent -> the titles of the servers that it names."""
    degraded: str | None = None
    """Why the search goes by words alone, or None if it has vectors."""

    @property
    def intents(self) -> tuple[Intent, ...]:
        """The whole request, then the parts of which the best one counts as well: both readings, or the clauses."""
        return (self.whole, *((self.whole, self.original) if self.original else self.clauses))

    def change_intents(self, change: Callable[[Intent], Intent]) -> UnderstoodRequest:
        """Return the request with every intent changed."""
        return replace(
            self,
            whole=change(self.whole),
            clauses=tuple(change(clause) for clause in self.clauses),
            original=change(self.original) if self.original else None,
        )

    def with_vectors(self, vectors: Mapping[str, FloatArray]) -> UnderstoodRequest:
        """Return the request with a vector for each intent, by its text."""
        return self.change_intents(lambda intent: replace(intent, vector=vectors[intent.text]))

    def by_words_alone(self, reason: str) -> UnderstoodRequest:
        """Return the request without vectors, marked with the reason."""
        return replace(self.change_intents(lambda intent: replace(intent, vector=None)), degraded=reason)


def understand(query: Query, servers: tuple[str, ...] = ()) -> UnderstoodRequest:
    """Read a query of a caller who sees these servers.

    Only `hybrid` translates, cuts out what is ruled out, and splits. The others take it as it is.
    """
    text = condense(query.text, servers)
    if query.ranker != "hybrid":
        return UnderstoodRequest(text=query.text, whole=_intent(text))
    if english := to_english(text):
        return UnderstoodRequest(text=query.text, whole=_intent(english), original=_intent(text))
    affirmative, excluded = split_negations(spell_out_short_forms(text))
    clauses = tuple(_intent(clause) for clause in split_clauses(affirmative))
    return UnderstoodRequest(text=query.text, whole=_intent(affirmative), clauses=clauses, excluded=excluded)


def _intent(text: str) -> Intent:
    return Intent(text=text, terms=tuple(query_terms(text)))


def spell_out_short_forms(text: str) -> str:
    """Write out short forms that tools seldom use: `MR` is a merge request, "what time is it" the current time."""
    for pattern, words in _SHORT_FORMS:
        text = pattern.sub(words, text)
    return text


def possible_typos(request: UnderstoodRequest, candidates: Candidates) -> tuple[str, ...]:
    """Return words that no visible tool holds. If there are many, they are names and numbers, and none is returned."""
    text = request.whole.text
    unknown = {term for term, count in zip(candidates.terms, candidates.frequency.tolist(), strict=True) if count == 0}
    if not unknown:
        return ()
    names = {word.lower() for word in _PROPER_NAME.findall(text)}
    words = [word for word in split_words(text) if word.isalpha() and word not in names]
    unknown_words = [word for word in words if unknown.intersection(query_terms(word))]
    shorthand = [word for word in unknown_words if _is_shorthand(word)]
    typos = [word for word in unknown_words if len(word) >= _MIN_LETTERS and word not in shorthand]
    return (*shorthand, *(typos if len(typos) <= _MAX_TYPOS else ()))


def correct_typos(request: UnderstoodRequest, typos: Sequence[str], vocabulary: Sequence[str]) -> UnderstoodRequest:
    """Replace misspelt words by near words of the vocabulary. An intent that changes loses its vector.

    A short word may have one slip, a long one two. In a short word another letter makes another word (shoe, show), so
    only swapped, doubled and dropped letters count as slips.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    nearest: dict[str, str] = {}
    for word in typos:
        if _is_shorthand(word):
            meant = [other for other in vocabulary if _without_vowels(other) == word]
            if meant:
                nearest[word] = min(meant, key=lambda other: (not actions(other), len(other)))
            if meant or len(word) < _MIN_LETTERS:
                continue
        slips = 2 if len(word) >= _LONG_WORD else 1
        matches = process.extract(word, vocabulary, scorer=OSA.distance, score_cutoff=slips, limit=5)
        likely = sorted((distance, other) for other, distance, _ in matches if _is_slip(word, other))
        if likely:
            nearest[word] = likely[0][1]
    if not nearest:
        return request
    return replace(request.change_intents(lambda intent: _corrected(intent, nearest)), corrections=nearest)


def _is_shorthand(word: str) -> bool:
    """Tell whether a word is written without its vowels, as `lst` for list."""
    return len(word) > 2 and word == _without_vowels(word)


def _without_vowels(word: str) -> str:
    return word[0] + _VOWELS.sub("", word[1:])


def _is_slip(word: str, other: str) -> bool:
    if other[0] != word[0]:
        return False
    return len(word) >= _SHORT_WORD or len(word) != len(other) or sorted(word) == sorted(other)


def _corrected(intent: Intent, nearest: Mapping[str, str]) -> Intent:
    stems = {query_terms(word)[0]: query_terms(other)[0] for word, other in nearest.items()}
    if stems.keys().isdisjoint(intent.terms):
        return intent
    text = _LETTERS.sub(lambda match: nearest.get(match[0].lower(), match[0]), intent.text)
    terms = tuple(dict.fromkeys(stems.get(term, term) for term in intent.terms))
    return Intent(text=text, terms=terms)


def recognize_servers(request: UnderstoodRequest, candidates: Candidates) -> UnderstoodRequest:
    """Note which of the servers each intent names: by the whole name, or by a word that tells it from the others.

    An untrusted server must be named whole, or it could take many words into its name.
    """
    trusted = {item.server_title: item.trusted for item in candidates.facets if item.server != LOCAL}
    titles = [item.server_title for item in candidates.facets]
    telling = telling_words(candidates.terms, candidates.impact > 0, titles)
    named = {
        intent.text: frozenset(
            title
            for title, is_trusted in trusted.items()
            if names_server(frozenset(intent.terms), title)
            or (is_trusted and not telling.get(title, frozenset()).isdisjoint(intent.terms))
        )
        for intent in request.intents
    }
    return replace(request, named_servers=named)


def telling_words(terms: Sequence[str], held: BoolArray, titles: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return server -> the terms that are words of its name, and that mostly its own candidates hold.

    `held` tells for each term which candidates hold it, `titles` the server of each candidate.
    """
    words = frozenset[str]().union(*map(title_words, set(titles)))
    telling: dict[str, frozenset[str]] = {}
    for term, row in zip(terms, held, strict=True):
        if term in words:
            holders = Counter(titles[place] for place in row.nonzero()[0].tolist())
            for title, count in holders.items():
                if term in title_words(title) and count >= _OWN_SHARE * holders.total():
                    telling[title] = telling.get(title, frozenset()) | {term}
    return telling
