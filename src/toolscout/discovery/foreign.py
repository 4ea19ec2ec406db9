"""A request in Chinese, Spanish, German or Japanese, read word by word as English; most tools speak nothing else.

The built-in model knows English only. A short glossary does what a short glossary can: the verbs and nouns of common
requests are put into English, in their order, and words that it does not know stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from toolscout.discovery.glossary import GLOSSARY
from toolscout.text import STOP_WORDS, split_words, stem_word

LEAST_READ = 0.5
"""How much of a request must be known, words by all words, before it is read as another language."""

_SMALL_WORDS = {
    "es": "el la los las un una unos unas de del al con sin para por en y mi mis tu tus su sus que cual cuando donde "
    "como esta este estos estas nuestro nuestra hay tengo quiero necesito favor ser es son lo le se",
    "de": "der die das den dem des ein eine einen einem einer eines und oder mit ohne im ins zum zur von vom fur auf "
    "aus bei nach uber ist sind wie wann wo welche welcher mein meine meinen meinem meiner unser unsere unserem "
    "unseren ich mir mich wir uns bitte diese diesen dieser diesem nicht zu um an am steht stehen hat haben man",
}
_LONGEST = 8
_LEAST_REST = 4
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


@dataclass(frozen=True, slots=True)
class _Words:
    """The forms of a language: whole words, and beginnings of words."""

    whole: dict[str, str] = field(default_factory=dict)
    begun: dict[str, str] = field(default_factory=dict)


def to_english(text: str) -> str | None:
    """Return the request in English words, or None when it is English already or cannot be read."""
    if _UNSPACED.search(text):
        return _from_unspaced(unicodedata.normalize("NFKC", text))
    words = split_words(text)
    english = sum(word in STOP_WORDS or stem_word(word) in _heads() for word in words)
    if 2 * english > len(words) or (text.isascii() and not any(word in _little() for word in words)):
        return None  # keywords and brands, such as `postgres`, begin like words of any language
    best: tuple[int, str | None] = (english, None)
    for language, known in _latin().items():
        little = [word in _small()[language] for word in words]
        read = ["" if small else _read(word, known) for word, small in zip(words, little, strict=True)]
        count = sum(map(bool, read)) + sum(little)
        if count > best[0] and any(read) and count >= LEAST_READ * len(words):
            triples = zip(words, read, little, strict=True)
            kept = [found or word for word, found, small in triples if found or not (small or word in STOP_WORDS)]
            best = (count, " ".join(kept))
    return best[1]


def _from_unspaced(text: str) -> str | None:
    """Read scripts without spaces by the longest known words; what is written in Latin letters stays."""
    said: list[str] = []
    read = total = end = 0
    for run in _UNSPACED.finditer(text):
        said += text[end : run.start()].split()
        found = list(_segments(run[0]))
        said += [english for english, _ in found]
        read += sum(length for _, length in found)
        total += len(run[0])
        end = run.end()
    said += text[end:].split()
    return " ".join(dict.fromkeys(said)) if read and read >= LEAST_READ * total * 0.7 else None


def _segments(run: str) -> Iterator[tuple[str, int]]:
    known, place = _unspaced(), 0
    while place < len(run):
        for length in range(min(_LONGEST, len(run) - place), 0, -1):
            if english := known.get(run[place : place + length]):
                yield english, length
                place += length
                break
        else:
            place += 1


def _read(word: str, known: _Words) -> str:
    """Look a word up whole, then by its beginning; what is left of a compound is looked up as well."""
    if english := known.whole.get(word):
        return english
    for length in range(len(word), 2, -1):
        if english := known.begun.get(word[:length]):
            rest = word[length:]
            return f"{english} {_read(rest, known)}".strip() if len(rest) >= _LEAST_REST else english
    return ""


@cache
def _entries() -> tuple[tuple[str, list[str], list[str], list[str], list[str]], ...]:
    lines = (line.split("|") for line in GLOSSARY.strip().splitlines())
    return tuple((head, zh.split(), es.split(), de.split(), ja.split()) for head, zh, es, de, ja in lines)


@cache
def _heads() -> frozenset[str]:
    return frozenset(stem_word(word) for head, *_ in _entries() for word in head.split())


@cache
def _latin() -> Mapping[str, _Words]:
    known = {"es": _Words(), "de": _Words()}
    for head, _, spanish, german, _ in _entries():
        for language, forms in (("es", spanish), ("de", german)):
            for form in forms:
                part = known[language].begun if form.endswith("*") else known[language].whole
                part.setdefault(form.rstrip("*"), head)
    return known


@cache
def _little() -> frozenset[str]:
    return frozenset().union(*_small().values()) - STOP_WORDS


@cache
def _small() -> Mapping[str, frozenset[str]]:
    return {language: frozenset(words.split()) for language, words in _SMALL_WORDS.items()}


@cache
def _unspaced() -> Mapping[str, str]:
    known: dict[str, str] = {}
    for head, chinese, _, _, japanese in _entries():
        for form in (*chinese, *japanese):
            known.setdefault(form, head)
    return known
