"""Translation of requests in Chinese, Spanish, German or Japanese into English, word by word.

Most tools are described in English, and the built-in model knows English only. A glossary (`data/glossary.tsv`) covers
the verbs and nouns of common requests. They are put into English in their order, and unknown words stay as they are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from toolscout.data import read_data
from toolscout.text import HAN_AND_KANA, STOP_WORDS, split_words, stem_word

LEAST_KNOWN = 0.5
"""The share of a request's words that must be known before it is read as another language."""
_UNSPACED_SHARE = 0.7
"""Chinese and Japanese need only this much of `LEAST_KNOWN`, since particles count among the characters."""
_FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "spanish": frozenset(
        "el la los las un una unos unas de del al con sin para por en y mi mis tu tus su sus que cual cuando donde "
        "como esta este estos estas nuestro nuestra hay tengo quiero necesito favor ser es son lo le se".split()
    ),
    "german": frozenset(
        "der die das den dem des ein eine einen einem einer eines und oder mit ohne im ins zum zur von vom fur auf "
        "aus bei nach uber ist sind wie wann wo welche welcher mein meine meinen meinem meiner unser unsere unserem "
        "unseren ich mir mich wir uns bitte diese diesen dieser diesem nicht zu um an am steht stehen hat haben "
        "man".split()
    ),
}
"""Articles, prepositions and the like. They show which language it is and are not translated."""
_ONLY_FOREIGN = frozenset().union(*_FUNCTION_WORDS.values()) - STOP_WORDS
LONGEST_WORD = 9
"""The most characters of a Chinese or Japanese word in the glossary."""
_SHORTEST_REST = 4


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """An English word and its forms in each language. A form that ends in `*` stands for all words that begin so."""

    english: str
    forms: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """The forms of a language -> English: whole words, and beginnings of words."""

    words: dict[str, str] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)


@cache
def glossary() -> tuple[GlossaryEntry, ...]:
    """Read the glossary. Its first line names the languages, and its letters have no accents."""
    (_, *languages), *lines = (line.split("\t") for line in read_data("glossary.tsv").splitlines())
    return tuple(
        GlossaryEntry(english, {language: tuple(cell.split()) for language, cell in zip(languages, cells, strict=True)})
        for english, *cells in lines
    )


def to_english(text: str) -> str | None:
    """Return the request in English words, or None if it is English already or too much of it is unknown."""
    if HAN_AND_KANA.search(text):
        return _from_unspaced(unicodedata.normalize("NFKC", text))
    words = split_words(text)
    english = sum(word in STOP_WORDS or stem_word(word) in _english_stems() for word in words)
    if 2 * english > len(words) or (text.isascii() and not any(word in _ONLY_FOREIGN for word in words)):
        return None  # keywords and brands, such as `postgres`, begin like words of any language
    best: tuple[int, str | None] = (english, None)
    for language, function_words in _FUNCTION_WORDS.items():
        lexicon = _lexicon(language)
        translations = ["" if word in function_words else _look_up(word, lexicon) for word in words]
        known = sum(map(bool, translations)) + sum(word in function_words for word in words)
        if known > best[0] and any(translations) and known >= LEAST_KNOWN * len(words):
            dropped = function_words | STOP_WORDS
            pairs = zip(words, translations, strict=True)
            best = (known, " ".join(new or word for word, new in pairs if new or word not in dropped))
    return best[1]


def _from_unspaced(text: str) -> str | None:
    """Translate scripts without spaces by the longest known words. Words in Latin letters stay."""
    translation: list[str] = []
    known = total = end = 0
    for run in HAN_AND_KANA.finditer(text):
        translation += text[end : run.start()].split()
        segments = list(_segments(run[0]))
        translation += [english for english, _ in segments]
        known += sum(length for _, length in segments)
        total += len(run[0])
        end = run.end()
    translation += text[end:].split()
    enough = known and known >= LEAST_KNOWN * total * _UNSPACED_SHARE
    return " ".join(dict.fromkeys(translation)) if enough else None


def _segments(run: str) -> Iterator[tuple[str, int]]:
    """Yield the English of each known word of a run, and its length."""
    words, place = _lexicon("chinese", "japanese").words, 0
    while place < len(run):
        for length in range(min(LONGEST_WORD, len(run) - place), 0, -1):
            if english := words.get(run[place : place + length]):
                yield english, length
                place += length
                break
        else:
            place += 1


def _look_up(word: str, lexicon: _Lexicon) -> str:
    """Look up a word, then its longest known beginning. The rest of a compound is looked up as well."""
    if english := lexicon.words.get(word):
        return english
    for length in range(len(word), 2, -1):
        if english := lexicon.prefixes.get(word[:length]):
            rest = word[length:]
            return f"{english} {_look_up(rest, lexicon)}".strip() if len(rest) >= _SHORTEST_REST else english
    return ""


@cache
def _english_stems() -> frozenset[str]:
    return frozenset(stem_word(word) for entry in glossary() for word in entry.english.split())


@cache
def _lexicon(*languages: str) -> _Lexicon:
    """Index the forms of languages."""
    lexicon = _Lexicon()
    for entry in glossary():
        for form in (form for language in languages for form in entry.forms[language]):
            (lexicon.prefixes if form.endswith("*") else lexicon.words)[form.rstrip("*")] = entry.english
    return lexicon
