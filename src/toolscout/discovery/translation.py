"""Translation of requests in sixteen languages into English, word by word.

Most tools are described in English, and the built-in model knows English only. The tables `data/languages/CODE.tsv`
were learned from translations of user interfaces (`training/make_lexicons.py`). Each word becomes the English one that
it stands for most often there, in its order. Unknown words in Latin letters stay, since many are names.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from toolscout.data import read_data
from toolscout.discovery.language import english_words, function_words, possible_languages
from toolscout.text import fold

_MARKS = r"\u0300-\u036f\u064b-\u065f\u0900-\u0903\u093a-\u094f"
_TOKEN = re.compile(
    r"(?P<code>[A-Za-z0-9][\w.@/:-]*[\d_@/:.][\w@/:-]*\w|\d+)"
    rf"|(?P<latin>[A-Za-z\u00c0-\u024f\u1e00-\u1eff{_MARKS}]+)"
    rf"|(?P<other>(?:[^\W\d_A-Za-z\u00c0-\u024f\u1e00-\u1eff]|[{_MARKS}])+)"
)
MAX_CHARACTERS = 1_000
"""How much of a request is translated."""
_UNSPACED = frozenset({"ja", "zh"})
_SYLLABIC = frozenset({"vi"})
_COMPOUNDING = frozenset({"de", "nl"})
_AGGLUTINATIVE = frozenset({"ko"})
_PREFIXES = {"ar": ("وال", "بال", "ال", "لل", "و", "ب", "ل")}
_LONGEST = 8
_LONGEST_IN_SYLLABLES = 3
"""The most characters of a Chinese or Japanese word, and the most syllables of a Vietnamese one."""
_MAX_TRIED = 3
"""How many languages in Latin letters are compared by how much they translate."""
_MIN_PART = 4
"""The shortest part of a compound, and the shortest beginning that two forms of a word share."""
_LEAST_SHARED = {"ko": 2, "ar": 3, "hi": 3}
"""The same where a character is a syllable, or where vowels are omitted or written as marks."""
_LONG_WORDS = 1.5
"""The exponent by which a long word counts more than its parts."""
_SHARED = 0.6
"""The share of a word that must agree with the beginning of another form of it."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words of a language -> English. A function word has an empty translation."""

    language: str
    words: dict[str, str]
    folded: dict[str, str]
    """Latin words without their accents, for requests that omit them."""
    order: tuple[str, ...]
    """The words in the order of their characters, as the table has them, to find other forms of a word."""

    def look_up(self, word: str) -> str | None:
        """Translate a word or another form of it. None if it is unknown, empty if it means nothing alone."""
        if (english := self._exact(word)) is not None:
            return english
        for prefix in _PREFIXES.get(self.language, ()):
            if word.startswith(prefix) and (english := self._exact(word.removeprefix(prefix))) is not None:
                return english
        if self.language in _COMPOUNDING and (english := self._parts(word)):
            return english
        return self._other_form(word)

    def _exact(self, word: str) -> str | None:
        english = self.words.get(word)
        return self.folded.get(fold(word)) if english is None and self.folded else english

    def _parts(self, word: str) -> str:
        """Translate a compound of two known words, with or without an `s` between them."""
        for place in range(len(word) - _MIN_PART, _MIN_PART - 1, -1):
            first, rest = word[:place], word[place:]
            start = self._exact(first) or (self._exact(first[:-1]) if first.endswith("s") else None)
            end = self._exact(rest)
            if start and end:
                return f"{start} {end}"
        return ""

    def _other_form(self, word: str) -> str | None:
        """Translate by the word with the longest beginning in common, if that is most of it."""
        place = bisect(self.order, word)
        near = max(self.order[max(0, place - 3) : place + 3], key=lambda other: _shared(word, other), default="")
        length = _shared(word, near)
        least = _LEAST_SHARED.get(self.language, _MIN_PART)
        is_stem = self.language in _AGGLUTINATIVE and length == len(near)
        if length >= least and (is_stem or length >= _SHARED * max(len(word), len(near))):
            return self.words[near]
        return None


@cache
def read_lexicon(language: str) -> Lexicon:
    """Read the table of a language."""
    rows = (line.partition("\t") for line in read_data(f"languages/{language}.tsv").splitlines())
    words = {word: english for word, _, english in rows}
    accented = (word for word in words if language in function_words().by_language and not word.isascii())
    return Lexicon(language, words, {fold(word): words[word] for word in accented}, tuple(words))


def _shared(word: str, other: str) -> int:
    length = 0
    for mine, theirs in zip(word, other, strict=False):
        if mine != theirs:
            break
        length += 1
    return length


def to_english(text: str) -> str | None:
    """Return the request in English words, or None if it is English already or no word of it is known."""
    text = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])
    best: tuple[int, str | None] = (0, None)
    for language in possible_languages(text)[:_MAX_TRIED]:
        lexicon = read_lexicon(language)
        known, words = _translate(text, lexicon)
        if known > best[0]:
            best = (known, " ".join(words) or None)
    return best[1]


def _translate(text: str, lexicon: Lexicon) -> tuple[int, Sequence[str]]:
    """Return how many words are known, and the English of all that mean something. Only unknown Latin words stay."""
    known, english = 0, list[str]()
    own = function_words().by_language.get(lexicon.language, frozenset())
    for word, is_plain in _words(text, lexicon):
        meaning = ("" if word.lower() in own else lexicon.look_up(word.lower())) if is_plain else None
        if meaning is None:
            english += [word] if word.isascii() and len(word) > 1 else []
            continue
        known += 1
        english += meaning.split()
    return known, tuple(dict.fromkeys(english))


def _words(text: str, lexicon: Lexicon) -> Iterator[tuple[str, bool]]:
    """Yield the words, and whether each is one of the language: not code, no English word, no name."""
    if lexicon.language in _SYLLABIC:
        syllables = [match[0].lower() for match in _TOKEN.finditer(text)]
        yield from ((word, True) for word in _segments(syllables, lexicon, _LONGEST_IN_SYLLABLES, " "))
        return
    for match in _TOKEN.finditer(text):
        word = match[0]
        if match.lastgroup == "code":
            yield word, False
        elif match.lastgroup == "latin":
            is_english = word.lower() in english_words() and word.lower() not in lexicon.words
            yield word, not is_english
        elif lexicon.language in _UNSPACED:
            yield from ((part, part in lexicon.words) for part in _segments(word, lexicon, _LONGEST, ""))
        else:
            yield word, True


def _segments(units: Sequence[str], lexicon: Lexicon, most: int, separator: str) -> Sequence[str]:
    """Cut a text without word borders so that the longest known words cover the most of it."""
    value, start_of = [0.0], [0]
    for end in range(1, len(units) + 1):
        best = (value[end - 1], end - 1)
        for start in range(max(0, end - most), end):
            if separator.join(units[start:end]) in lexicon.words:
                best = max(best, (value[start] + (end - start) ** _LONG_WORDS, start))
        value.append(best[0])
        start_of.append(best[1])
    words, end = [], len(units)
    while end:
        words.append(separator.join(units[start_of[end] : end]))
        end = start_of[end]
    return words[::-1]
