"""Screen a definition for poisoned text by rules that anyone can read; pure, synchronous, linear in the text's length."""

from __future__ import annotations

from toolscout.indexing.screen.marks import MARKS
from toolscout.indexing.screen.phrases import PHRASES
from toolscout.indexing.screen.rule import Rule
from toolscout.indexing.screen.steering import STEERING
from toolscout.indexing.screen.texts import END, Reading, Texts, readings, visible
from toolscout.models import Finding, Tool

__all__ = ["RULES", "VERSION", "quarantines", "screen_tool"]

VERSION = 1
"""Raised with every change of a rule, so that what was screened before is screened again."""

RULES: tuple[Rule, ...] = (*PHRASES, *STEERING, *MARKS)
"""Every rule, in the order of docs/trust.md."""

_WORDED = tuple(rule for rule in RULES if rule.patterns)
_MARKED = tuple(rule for rule in RULES if rule.find)


def screen_tool(tool: Tool) -> tuple[Finding, ...]:
    """Return what the rules find, at most one finding a rule, those that quarantine first."""
    texts = Texts(tool)
    found: dict[str, Finding] = {}
    for rule in _MARKED:
        span = rule.find(texts.raw) if rule.find else None
        if span:
            found[rule.id] = _finding(rule, texts, Reading("", texts.raw), span)
    for reading in readings(texts.raw):
        for rule in _WORDED:
            if rule.id not in found:
                span = next((span for item in rule.patterns if (span := item.find(reading.text))), None)
                if span:
                    found[rule.id] = _finding(rule, texts, reading, span)
    return tuple(sorted(found.values(), key=lambda finding: finding.severity != "quarantine"))


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
