"""How the documented rankers read text: lower case, whole words first, substrings only of words long enough."""

from __future__ import annotations

import re
from functools import lru_cache

from toolscout.words import STOP_WORDS, split_words

MIN_PART = 3
"""The shortest word that may match inside another: below, 'an' would be found in 'manage'."""


def plain_words(query: str) -> list[str]:
    """Return the query's words in order, without stop words unless there is nothing else."""
    words = list(dict.fromkeys(split_words(query)))
    return [word for word in words if word not in STOP_WORDS] or words


@lru_cache(maxsize=65_536)
def spaced(name: str) -> str:
    """Write a name as words: `sendEmail_v2` becomes `send email v2`."""
    return " ".join(split_words(name))


@lru_cache(maxsize=1_024)
def _whole(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")


def has_word(word: str, text: str) -> bool:
    """Tell whether a word stands in a lower-case text as a whole word."""
    return word in text and _whole(word).search(text) is not None


def has_part(word: str, text: str) -> bool:
    """Tell whether a word stands in a lower-case text, as a whole word or, when long enough, inside one."""
    return word in text and (len(word) >= MIN_PART or _whole(word).search(text) is not None)
