"""What a rule is: an id, a sentence for people, a severity, and what it looks for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression over folded text, tried only where one of its `cues` occurs."""

    cues: tuple[str, ...]
    regex: re.Pattern[str]

    def find(self, text: str) -> Span | None:
        """Return where the pattern matches, or nothing."""
        for cue in self.cues:
            if cue in text:
                match = self.regex.search(text)
                return match.span() if match else None
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: `patterns` are looked for in every reading of the text, `find` once in the text as it was sent."""

    id: str
    sentence: str
    severity: Literal["quarantine", "notice"] = "quarantine"
    patterns: tuple[Pattern, ...] = ()
    find: Callable[[str], Span | None] | None = None


def pattern(cues: str, regex: str) -> Pattern:
    """Compile a pattern: cues are separated by `|`; `~N` is a gap in one sentence, `^^N` one in the whole string."""
    regex = re.sub(r"~(\d+)", r"[^\\0.!?;:]{0,\1}?", regex)
    regex = re.sub(r"\^\^(\d+)", r"[^\\0]{0,\1}?", regex)
    return Pattern(tuple(cues.split("|")), re.compile(regex))
