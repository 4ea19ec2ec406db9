"""How the documented rankers read text: folded, whole words first, substrings only of words long enough."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from toolscout.text import STOP_WORDS, split_words

MIN_PART = 4
"""The shortest word that may match inside another: below, 'an' would be found in 'manage', 'add' in 'address'."""

_ACCENTS = re.compile(r"[\u0300-\u036f]")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def plain_words(query: str) -> list[str]:
    """Return the query's words in order, without stop words unless there is nothing else."""
    words = list(dict.fromkeys(split_words(query)))
    return [word for word in words if word not in STOP_WORDS] or words


def folded(text: str) -> str:
    """Write a text as the query's words are written: lower case, without accents."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text))).casefold()


@lru_cache(maxsize=65_536)
def spaced(name: str) -> str:
    """Write a name as words: `sendEmail_v2` becomes `send email v2`."""
    return " ".join(split_words(name))


@lru_cache(maxsize=1_024)
def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")


@lru_cache(maxsize=1_024)
def _inflected(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?:s|es|ed|ing)?(?!\w)")


def has_word(word: str, text: str) -> bool:
    """Tell whether a word stands in a folded text as a whole word."""
    return word in text and _whole(word).search(text) is not None


def has_part(word: str, text: str) -> bool:
    """Tell whether a word stands in a folded text: anywhere when it is long enough, else with its endings at most."""
    return word in text and (may_be_part(word) or _inflected(word).search(text) is not None)


def may_be_part(word: str) -> bool:
    """Tell whether a word says enough to be looked for inside others; scripts without spaces have no others."""
    return len(word) >= MIN_PART or _UNSPACED.search(word) is not None
