"""What a rule is: an id, a sentence for people, a severity, and what it looks for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Span = tuple[int, int]
STEM = 5
"""How many letters of a word decide whether a pattern is tried at all."""


@dataclass(frozen=True, slots=True)
class Cue:
    """What a text must hold before a pattern is tried: one of some beginnings of words, or one of some signs."""

    stems: frozenset[str]
    signs: tuple[str, ...]

    def among(self, stems: frozenset[str], text: str) -> bool:
        """Tell whether the text, whose words begin with these stems, holds the cue."""
        return not self.stems.isdisjoint(stems) or any(sign in text for sign in self.signs)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression over folded text, tried only where all of its cues occur: most texts cost it nothing."""

    cues: tuple[Cue, ...]
    regex: re.Pattern[str]

    def find(self, stems: frozenset[str], text: str) -> Span | None:
        """Return where the pattern matches, or nothing."""
        for cue in self.cues:
            if not cue.among(stems, text):
                return None
        match = self.regex.search(text)
        return match.span() if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: `patterns` are looked for in every reading of the text, `find` once in the text as it was sent."""

    id: str
    sentence: str
    severity: Literal["quarantine", "notice"] = "quarantine"
    patterns: tuple[Pattern, ...] = ()
    find: Callable[[str], Span | None] | None = None


def pattern(cues: str, regex: str) -> Pattern:
    """Compile a pattern: cues are words `a|b` joined by ` & `; `~N` is a gap in a sentence, `^^N` one in a string."""
    regex = re.sub(r"~(\d+)", r"[^\\0.!?;:]{0,\1}?", regex)
    regex = re.sub(r"\^\^(\d+)", r"[^\\0]{0,\1}?", regex)
    return Pattern(tuple(_cue(group.split("|")) for group in cues.split(" & ")), re.compile(regex))


def _cue(words: list[str]) -> Cue:
    plain = [word for word in words if word.isascii() and word.isalnum()]
    signs = tuple(word for word in words if word not in plain)
    return Cue(frozenset(word[:STEM] for word in plain), signs)
