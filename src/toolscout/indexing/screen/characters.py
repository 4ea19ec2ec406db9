"""Characters that people and models read differently: tables, and the checks that a pattern cannot express."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from toolscout.data import read_toml

CHARACTER_FILE = "screen/characters.toml"

MAX_CHARS = 200_000
"""How many characters of a definition are read. A longer one is quarantined unread."""

Span = tuple[int, int]

_DIRECTION_OVERRIDE = re.compile("[\u202d\u202e]")
_DIRECTION_EMBEDDING = re.compile("[\u202a\u202b\u2066-\u2068]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{3,6}\U000e007f")
_TAG = re.compile("[\U000e0000-\U000e007f]")
_WORD = re.compile("[A-Za-z\u0370-\u052f\u0561-\u0587]{4,}")
_FOREIGN = re.compile("[\u0370-\u052f\u0561-\u0587]")
_ACRONYM = re.compile("[A-Z]{2,}[^A-Za-z]{1,6}")
_BLANK = re.compile("[\\s\u2800\u3164\u00ad\u200b]{80,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterTables:
    """Tables for `str.translate`."""

    invisible: Mapping[int, None]
    """Characters that show nothing."""
    look_alikes: Mapping[int, str]
    """Lower-case letters of other scripts to the Latin letters that they look like."""
    latin: Mapping[int, str | None]
    """Look-alikes, accents and typographic punctuation to plain Latin."""
    leet: Mapping[int, str]
    """Digits and signs to the letters that they stand for."""


@cache
def character_tables() -> CharacterTables:
    """Read the tables from the data file."""
    table = read_toml(CHARACTER_FILE)
    look_alikes = {code: letter for row in table["look_alikes"] for code, letter in _letters(row).items()}
    accents = [code for code in range(0x300, 0x370) if unicodedata.category(chr(code)) == "Mn"]
    return CharacterTables(
        invisible={code: None for first, last in table["invisible"] for code in range(first, last + 1)},
        look_alikes=look_alikes,
        latin={**dict.fromkeys(accents), **look_alikes, **_letters(table["variants"])},
        leet=_letters(table["leet"]),
    )


def find_bidi(text: str) -> Span | None:
    """Find an override of the writing direction, or an embedding in a string without any right-to-left letter."""
    if text.isascii():
        return None
    span = _first(_DIRECTION_OVERRIDE, text)
    if span or not _DIRECTION_EMBEDDING.search(text):
        return span
    start = 0
    for part in text.split("\x00"):
        match = _DIRECTION_EMBEDDING.search(part)
        if match and not _RIGHT_TO_LEFT.search(part):
            return start + match.start(), start + match.end()
        start += len(part) + 1
    return None


def find_tags(text: str) -> Span | None:
    """Find tag characters outside of flag emoji."""
    if text.isascii() or not _TAG.search(text):
        return None
    return _first(_TAG, _FLAG.sub(lambda flag: "\U0001f3f4" * len(flag[0]), text))


def find_mixed_scripts(text: str) -> Span | None:
    """Find a Latin word with look-alike letters of another script. `PDFы` and `μm` are harmless and do not count."""
    if text.isascii() or not _FOREIGN.search(text):
        return None
    look_alikes = character_tables().look_alikes
    for match in _WORD.finditer(text):
        word = match[0]
        foreign = [letter for letter in word.lower() if _FOREIGN.match(letter)]
        if not foreign or len(foreign) == len(word) or _ACRONYM.fullmatch(word):
            continue
        if all(look_alikes.get(ord(letter), "").isalpha() for letter in foreign):
            return match.span()
    return None


def find_padding(text: str) -> Span | None:
    """Find a long blank with more text behind it."""
    for match in _BLANK.finditer(text):
        if match.end() < len(text) and text[match.end()] != "\x00":
            return match.start(), min(len(text), match.end() + 40)
    return None


def find_too_much(text: str) -> Span | None:
    """Find that there is more text than the screen reads. The longest of 16,000 public definitions has 45,000."""
    return (MAX_CHARS, min(len(text), MAX_CHARS + 40)) if len(text) > MAX_CHARS else None


CHECKS: Mapping[str, Callable[[str], Span | None]] = {
    "bidi": find_bidi,
    "tags": find_tags,
    "mixed_scripts": find_mixed_scripts,
    "padding": find_padding,
    "too_much": find_too_much,
}
"""The checks by the names that rules use."""


def _first(regex: re.Pattern[str], text: str) -> Span | None:
    match = regex.search(text)
    return match.span() if match else None


def _letters(row: Mapping[str, Any]) -> dict[int, str]:
    return {ord(letter): latin for letter, latin in zip(row["letters"], row["latin"], strict=True)}
