"""Rules over characters: text that is written so that people and models read different things."""

from __future__ import annotations

import re

from toolscout.indexing.screen.letters import CONFUSABLE
from toolscout.indexing.screen.rule import Rule, Span

_ZERO = "\u200b-\u200d\u2060-\u2064\u180e\ufeff\u034f\u115f\u1160\u17b4\u17b5\u206a-\u206f"
_IN_WORD = re.compile(f"[A-Za-z0-9][{_ZERO}]{{1,64}}[A-Za-z0-9]|[{_ZERO}]{{4}}")
_BESIDE_WORD = re.compile(f"[A-Za-z0-9.,:;)(][{_ZERO}\u00ad]|(?!^)[{_ZERO}\u00ad][A-Za-z0-9]")
_OVERRIDE = re.compile("[\u202d\u202e]")
_BIDI = re.compile("[\u202a\u202b\u2066-\u2068]")
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{3,6}\U000e007f")
_TAG = re.compile("[\U000e0000-\U000e007f]")
_SELECTORS = re.compile(
    "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}|[^\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff][\U000e0100-\U000e01ef]"
)
_WORD = re.compile("[A-Za-z\u0370-\u052f\u0561-\u0587]{4,}")
_FOREIGN = re.compile("[\u0370-\u052f\u0561-\u0587]")
_ACRONYM = re.compile("[A-Z]{2,}[^A-Za-z]{1,6}")
_ESCAPE = re.compile("\x1b|\x9b|(?:^|[ \x00])(?:\\[(?:\\d{1,3};)*\\d{1,3}m[^\x00]{0,2000}?\\[0?m|\\]8;;)")
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9a\x9c-\x9f]")
_BLANK = re.compile("[\\s\u2800\u3164\u00ad\u200b]{80,}")


def _first(regex: re.Pattern[str], text: str) -> Span | None:
    match = regex.search(text)
    return match.span() if match else None


def _invisible(text: str) -> Span | None:
    return None if text.isascii() else _first(_IN_WORD, text)


def _stray(text: str) -> Span | None:
    return None if text.isascii() else _first(_BESIDE_WORD, text)


def _bidi(text: str) -> Span | None:
    """Find a forced direction, or an embedded one where nothing is written from right to left."""
    if text.isascii():
        return None
    found = _first(_OVERRIDE, text)
    return found or (_first(_BIDI, text) if not _RTL.search(text) else None)


def _tags(text: str) -> Span | None:
    """Find tag characters, those of flags aside."""
    if text.isascii() or not _TAG.search(text):
        return None
    return _first(_TAG, _FLAG.sub(lambda flag: "\U0001f3f4" * len(flag[0]), text))


def _selectors(text: str) -> Span | None:
    return None if text.isascii() else _first(_SELECTORS, text)


def _mixed(text: str) -> Span | None:
    """Find a Latin word with letters of another script that look the same; `PDFы` and `μm` are left alone."""
    if text.isascii() or not _FOREIGN.search(text):
        return None
    for match in _WORD.finditer(text):
        word = match[0]
        foreign = [letter for letter in word.lower() if _FOREIGN.match(letter)]
        if not foreign or len(foreign) == len(word) or _ACRONYM.fullmatch(word):
            continue
        if all(CONFUSABLE.get(ord(letter), "").isalpha() for letter in foreign):
            return match.span()
    return None


def _escapes(text: str) -> Span | None:
    """Find terminal codes, whole or with the escape character already taken out."""
    if "\x1b" in text or "\x9b" in text or "m" in text:
        return _first(_ESCAPE, text) if "[" in text or "]8;" in text or not text.isprintable() else None
    return None


def _controls(text: str) -> Span | None:
    return _first(_CONTROL, text)


def _padding(text: str) -> Span | None:
    """Find a long blank with more text behind it."""
    for match in _BLANK.finditer(text):
        if match.end() < len(text) and text[match.end()] != "\x00":
            return match.start(), min(len(text), match.end() + 40)
    return None


MARKS: tuple[Rule, ...] = (
    Rule(
        id="invisible-characters",
        sentence="It hides characters of no width inside words, or writes with them.",
        find=_invisible,
    ),
    Rule(
        id="bidi-override",
        sentence="It turns the direction of writing, so that what is shown is not what is read.",
        find=_bidi,
    ),
    Rule(id="tag-characters", sentence="It holds Unicode tag characters, which only a model sees.", find=_tags),
    Rule(
        id="variation-selectors",
        sentence="It holds variation selectors that vary nothing, a way to hide bytes.",
        find=_selectors,
    ),
    Rule(id="mixed-scripts", sentence="A word mixes letters of two scripts that look alike.", find=_mixed),
    Rule(id="terminal-codes", sentence="It holds codes that recolour, hide or move text on a terminal.", find=_escapes),
    Rule(id="padding", sentence="It pushes text out of sight with a long blank.", find=_padding),
    Rule(
        id="stray-characters",
        sentence="It holds a character of no width beside a word, most often a slip of copying.",
        severity="notice",
        find=_stray,
    ),
    Rule(id="control-characters", sentence="It holds control characters.", severity="notice", find=_controls),
)
