"""Screen a definition for poisoned text by rules that anyone can read: pure, synchronous, in linear time."""

from __future__ import annotations

from toolscout.indexing.screen.disguise import DISGUISE
from toolscout.indexing.screen.marks import MARKS
from toolscout.indexing.screen.phrases import PHRASES
from toolscout.indexing.screen.rule import Rule
from toolscout.indexing.screen.steering import STEERING
from toolscout.indexing.screen.texts import END, Reading, Texts, readings, visible
from toolscout.models import Finding, Tool

__all__ = ["RULES", "VERSION", "quarantines", "screen_tool"]

VERSION = 1
"""Raised with every change of a rule, so that what was screened before is screened again."""

RULES: tuple[Rule, ...] = (*PHRASES, *STEERING, *DISGUISE, *MARKS)
"""Every rule, in the order of docs/trust.md."""

_MARKED = tuple(rule for rule in RULES if rule.find)
_PATTERNS = tuple((rule, pattern) for rule in RULES for pattern in rule.patterns)
_BY_STEM: dict[str, list[int]] = {}
_BY_SIGN: list[tuple[str, int]] = []
for _number, (_, _pattern) in enumerate(_PATTERNS):
    for _stem in _pattern.cues[0].stems:
        _BY_STEM.setdefault(_stem, []).append(_number)
    _BY_SIGN.extend((sign, _number) for sign in _pattern.cues[0].signs)
_ASCII_SIGNS = [item for item in _BY_SIGN if item[0].isascii()]
_TELLING = frozenset(_BY_STEM)


def screen_tool(tool: Tool) -> tuple[Finding, ...]:
    """Return what the rules find, at most one finding a rule, those that quarantine first."""
    texts = Texts(tool)
    found: dict[str, Finding] = {}
    for rule in _MARKED:
        span = rule.find(texts.raw) if rule.find else None
        if span:
            found[rule.id] = _finding(rule, texts, Reading("", texts.raw, frozenset()), span)
    for reading in readings(texts.raw, _TELLING):
        for rule, item in map(_PATTERNS.__getitem__, _candidates(reading)):
            if rule.id not in found and (span := item.find(reading.stems, reading.text)):
                found[rule.id] = _finding(rule, texts, reading, span)
    return tuple(sorted(found.values(), key=lambda finding: (finding.severity != "quarantine", finding.rule)))


def _candidates(reading: Reading) -> list[int]:
    """Number the patterns whose first cue the text holds, for most texts a few of all, in the order of the rules."""
    numbers = {number for stem in _TELLING & reading.stems for number in _BY_STEM[stem]}
    signs = _ASCII_SIGNS if reading.text.isascii() else _BY_SIGN
    numbers.update(number for sign, number in signs if sign in reading.text)
    return sorted(numbers)


def quarantines(findings: tuple[Finding, ...]) -> bool:
    """Tell whether a tool with these findings is kept out until someone approves it."""
    return any(finding.severity == "quarantine" for finding in findings)


def _finding(rule: Rule, texts: Texts, reading: Reading, span: tuple[int, int]) -> Finding:
    start, end = span
    number = reading.text.count(END, 0, start + (reading.text[start : start + 1] == END))
    reason = f"{rule.sentence[:-1]} ({reading.how})." if reading.how else rule.sentence
    return Finding(
        rule=rule.id,
        reason=reason,
        where=texts.where(number),
        excerpt=visible(reading.text[start:end].strip(END)),
        severity=rule.severity,
    )
