"""`fuzzy`: the mean, over the query's words, of the best tier that the word reaches on a tool.

1.0 exact name, .9 name prefix, .85 keyword, .8 name contains, .7 keyword contains, .6 word of the description,
.5 description contains. Else the edit similarity to a word of the name or a keyword counts, scaled to stay below these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from toolscout.models import Facets, Ranked
from toolscout.text import fold, has_part, has_word, may_match_inside, query_words, spell_out

SIMILAR_SCALE = 0.5
SIMILAR_FROM = 0.7


def rank_fuzzy(query: str, tools: Sequence[Facets]) -> list[Ranked]:
    """Score every tool that any word of the query reaches."""
    phrase = fold(query.strip())
    words = query_words(query)
    names = {name for facets in tools for name in _names(facets)}
    similar = {word: _similar(word, names) for word in words}
    ranked = []
    for facets in tools:
        tiers = _Tiers(facets)
        each = [tiers.best(word) or tiers.nearest(similar[word]) for word in words]
        mean = sum(each) / max(len(each), 1)
        score = max(mean, tiers.of_name(phrase))
        if score > 0:
            parts = {
                "words": dict(zip(words, each, strict=True)),
                "matched_words": [w for w, v in zip(words, each, strict=True) if v],
            }
            ranked.append(Ranked(facets=facets, score=round(score, 6), parts=parts))
    return ranked


class _Tiers:
    """The folded texts of a tool, and the tier that a word reaches on them."""

    def __init__(self, facets: Facets) -> None:
        self.name = fold(facets.name)
        self.words = spell_out(facets.name)
        self.keywords = [fold(keyword) for keyword in (*facets.keywords, *facets.tags)]
        self.description = fold(facets.description)
        self.names = _names(facets)
        self.all = "\n".join((self.name, self.words, self.description, *self.keywords))

    def of_name(self, text: str) -> float:
        """Return the tier of the name alone. The whole query, as one phrase, can reach no other."""
        if text in (self.name, self.words):
            return 1.0
        starts = self.words.startswith(f"{text} ")
        if not starts and may_match_inside(text):
            starts = self.name.startswith(text) or self.words.startswith(text)
        return 0.9 if starts else 0.0

    def nearest(self, similar: Mapping[str, float]) -> float:
        return max((similar[name] for name in self.names if name in similar), default=0.0) if similar else 0.0

    def best(self, word: str) -> float:
        if word not in self.all:
            return 0.0
        if tier := self.of_name(word):
            return tier
        if word in self.keywords:
            return 0.85
        if has_part(word, self.words):
            return 0.8
        if any(has_part(word, keyword) for keyword in self.keywords):
            return 0.7
        if has_word(word, self.description):
            return 0.6
        return 0.5 if has_part(word, self.description) else 0.0


def _names(facets: Facets) -> list[str]:
    return [*spell_out(facets.name).split(), *(fold(keyword) for keyword in facets.keywords)]


def _similar(word: str, names: Iterable[str]) -> dict[str, float]:
    """Return the words of names and the keywords that are spelt like the word, with their scaled edit similarity."""
    from rapidfuzz.distance import Levenshtein

    near = ((name, Levenshtein.normalized_similarity(word, name, score_cutoff=SIMILAR_FROM)) for name in names)
    return {name: SIMILAR_SCALE * similarity for name, similarity in near if similarity}
