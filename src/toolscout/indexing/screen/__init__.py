"""Screen a tool definition for poisoned text. Pure, synchronous, and linear in the length of the text."""

from __future__ import annotations

from toolscout.indexing.screen.rules import ScreenRule, load_rules, screen_version
from toolscout.indexing.screen.texts import END, Reading, Texts, readings, visible
from toolscout.models import Finding, Tool

__all__ = ["load_rules", "quarantines", "screen_tool", "screen_version"]


def screen_tool(tool: Tool) -> tuple[Finding, ...]:
    """Return at most one finding for each rule, those that quarantine first."""
    rule_set = load_rules()
    texts = Texts(tool)
    findings: dict[str, Finding] = {}
    for rule in rule_set.rules:
        if rule.raw and (span := rule.raw(texts.raw)):
            findings[rule.id] = _finding(rule, texts, Reading("", texts.raw, frozenset()), span)
    for reading in readings(texts.raw, rule_set.stems):
        for number in rule_set.candidates(reading.stems, reading.text):
            rule, pattern = rule_set.patterns[number]
            if rule.id not in findings and (span := pattern.find(reading.stems, reading.text)):
                findings[rule.id] = _finding(rule, texts, reading, span)
    return tuple(sorted(findings.values(), key=lambda finding: (finding.severity != "quarantine", finding.rule)))


def quarantines(findings: tuple[Finding, ...]) -> bool:
    """Tell whether a tool with these findings is hidden until someone approves it."""
    return any(finding.severity == "quarantine" for finding in findings)


def _finding(rule: ScreenRule, texts: Texts, reading: Reading, span: tuple[int, int]) -> Finding:
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
