"""Which language a request is written in. It is told by its script, or by its function words against English ones.

English requests, product names, code and typos must not be taken for another language, so English words and stop words
count against it, and quotations and code do not count at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from toolscout.data import read_data
from toolscout.text import QUOTED, STOP_WORDS, fold

LANGUAGES = ("ar", "de", "es", "fr", "hi", "it", "ja", "ko", "nl", "pl", "pt", "ru", "tr", "uk", "vi", "zh")
"""The languages that are translated, by their ISO 639-1 codes. Each has a table `data/languages/CODE.tsv`."""

_SCRIPTS = (
    (re.compile(r"[\u3040-\u30ff]"), ("ja",)),
    (re.compile(r"[\u3400-\u9fff\uf900-\ufaff]"), ("zh", "ja")),
    (re.compile(r"[\uac00-\ud7af]"), ("ko",)),
    (re.compile(r"[\u0400-\u052f]"), ("ru", "uk")),
    (re.compile(r"[\u0600-\u06ff]"), ("ar",)),
    (re.compile(r"[\u0900-\u097f]"), ("hi",)),
)
_OTHER_SCRIPT = re.compile(
    r"[\u0400-\u052f\u0600-\u06ff\u0900-\u097f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)
_SCRIPT_SHARE = 0.3
"""The share of letters in another script from which a request is not English. Brands and ids stay in Latin letters."""
_CODE = re.compile(r"\S*[\d_/@\\{}<>=#:.]\S+|\b\w+[A-Z]\w*\b")
_WORD = re.compile(r"[^\W\d_]+")
_MIN_LETTERS = 3
_NAME = 0.25
_UNKNOWN = 0.5
_STOP_WORD = 1.5
_ENGLISH = 0.6
"""What a capitalised word and an unknown one count for another language, and what English words count against it."""
_WITHOUT_FUNCTION_WORDS = 3
"""By how much accents must outweigh English words if there is no function word. English has names with accents."""


@dataclass(frozen=True, slots=True)
class FunctionWords:
    """Articles, prepositions and the like, and which of them tell a language from English."""

    by_language: Mapping[str, frozenset[str]]
    letters: Mapping[str, str]
    """The letters with marks that a language uses more than the others do."""
    every: frozenset[str]
    certain: frozenset[str]
    """Those that no English request contains."""
    doubtful: frozenset[str]
    """Those that are English words or parts of names as well, such as `la` and `para`."""


@cache
def english_words() -> frozenset[str]:
    """Return the common words of English requests and tool descriptions."""
    return frozenset(read_data("languages/en.txt").split()) | STOP_WORDS


@cache
def function_words() -> FunctionWords:
    """Read the function words of the languages in Latin letters."""
    rows = [line.split("\t") for line in read_data("languages/function_words.tsv").splitlines()]
    by_language = {language: frozenset(words.split()) for language, _, words in rows}
    letters = {language: letters for language, letters, _ in rows}
    every = frozenset().union(*by_language.values())
    foreign = every - STOP_WORDS
    return FunctionWords(by_language, letters, every, foreign - english_words(), foreign & english_words())


def possible_languages(text: str) -> tuple[str, ...]:
    """Return the languages that a request may be in, the likeliest first. Empty if it is English or unknown."""
    text = QUOTED.sub(" ", text)
    if text.isascii() or not _OTHER_SCRIPT.search(text):
        return _by_function_words(text)
    letters = sum(map(str.isalpha, text))
    stop = sum(match[0].lower() in STOP_WORDS for match in _WORD.finditer(text))
    if stop > 1 or len(_OTHER_SCRIPT.findall(text)) < max(2, _SCRIPT_SHARE * letters):
        return ()
    counts = {languages: len(script.findall(text)) for script, languages in _SCRIPTS}
    if counts["ja",] and counts["zh", "ja"]:
        return ("ja",)
    return max(counts, key=lambda languages: counts[languages])


def _by_function_words(text: str) -> tuple[str, ...]:
    table = function_words()
    words = [match[0].lower() for match in _WORD.finditer(text)]
    if text.isascii() and table.certain.isdisjoint(words) and table.doubtful.isdisjoint(words):
        return ()
    certain = doubtful = accented = stop = english = 0
    unknown = 0.0
    for word, is_name, opens_name in _plain_words(text):
        if word in table.certain and not opens_name:
            certain += 1
        elif word in table.certain or word in table.doubtful:
            doubtful += 1
        elif word in STOP_WORDS:
            stop += word not in table.every
        elif word in english_words():
            english += 1
        elif len(word) >= _MIN_LETTERS and not word.isascii() and not is_name:
            accented += fold(word) not in english_words()  # résumé and café are written with and without accents
        elif len(word) >= _MIN_LETTERS:
            unknown += _NAME if is_name else 1
    against = _STOP_WORD * stop + _ENGLISH * english
    if certain or doubtful > 1 or (doubtful and (accented or (unknown and not english))):
        is_foreign = certain + doubtful + accented + _UNKNOWN * unknown >= against and stop <= certain + accented
    else:
        is_foreign = accented > 0 and accented + _UNKNOWN * unknown >= _WITHOUT_FUNCTION_WORDS * against
    if not is_foreign:
        return ()
    counts = {
        language: sum(word in own for word in words) + sum(letter in text.lower() for letter in table.letters[language])
        for language, own in table.by_language.items()
    }
    return tuple(sorted(counts, key=lambda language: -counts[language]))


def _plain_words(text: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield the words outside of code, in lower case.

    With each, yield whether it is capitalised inside the request, and whether it opens a name, as in `El Paso`.
    """
    text = _CODE.sub(" ", text)
    for match in _WORD.finditer(text):
        is_capitalised = match[0][0].isupper()
        opens_name = is_capitalised and text[match.end() : match.end() + 2].strip().istitle()
        yield match[0].lower(), is_capitalised and match.start() > 0, opens_name
