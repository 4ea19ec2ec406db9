"""`keyword`: 100 exact name, 50 name contains, 20 description, 15 category, 10 for each tag, as whole numbers.

The whole query is scored as one phrase, and so is each of its words. A tool gets the points of the phrase or the mean
of the words, whichever is more. With equal points, the tool that matches more whole words comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolscout.models import Facets, Ranked
from toolscout.text import fold, has_part, has_word, query_words, spell_out

EXACT_NAME, IN_NAME, IN_DESCRIPTION, IN_CATEGORY, IN_TAG = 100, 50, 20, 15, 10


def rank_keyword(query: str, tools: Sequence[Facets]) -> list[Ranked]:
    """Score every tool that matches the phrase or any of its words."""
    phrase = fold(query.strip())
    words = query_words(query)
    ranked: list[tuple[int, Ranked]] = []
    for facets in tools:
        texts = _Texts(facets)
        whole = texts.points(phrase)
        each = [texts.points(word) for word in words]
        points = max(whole, round(sum(each) / max(len(each), 1)))
        if points == 0 and any(each):
            points = 1
        if points:
            matched = [word for word, value in zip(words, each, strict=True) if value]
            parts = {"phrase": whole, "words": dict(zip(words, each, strict=True)), "matched_words": matched}
            ranked.append((texts.whole_words(words), Ranked(facets=facets, score=float(points), parts=parts)))
    ranked.sort(key=lambda item: (-item[1].score, -item[0], item[1].facets.key))
    return [item for _, item in ranked]


class _Texts:
    """The folded texts of a tool, and the points that a word gets on them."""

    def __init__(self, facets: Facets) -> None:
        self.name = fold(facets.name)
        self.words = spell_out(facets.name)
        self.description = fold(facets.description)
        self.category = fold(facets.category)
        self.tags = [fold(tag) for tag in facets.tags]
        self.all = "\n".join((self.name, self.words, self.description, self.category, *self.tags))

    def points(self, text: str) -> int:
        if text not in self.all:
            return 0
        points = 0
        if text in (self.name, self.words):
            points += EXACT_NAME
        if has_part(text, self.name) or has_part(text, self.words):
            points += IN_NAME
        if has_part(text, self.description):
            points += IN_DESCRIPTION
        if has_part(text, self.category):
            points += IN_CATEGORY
        return points + IN_TAG * sum(has_part(text, tag) for tag in self.tags)

    def whole_words(self, words: Sequence[str]) -> int:
        return sum(has_word(word, self.words) or has_word(word, self.description) for word in words)
