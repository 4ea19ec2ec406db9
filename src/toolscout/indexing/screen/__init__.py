"""Screen a tool definition for poisoned text. Pure, synchronous, and linear in the length of the text."""

from __future__ import annotations

from dataclasses import replace

from toolscout.indexing.screen.classifier import LEARNED, OrderEvidence, find_order, load_weights, subject_of_strings
from toolscout.indexing.screen.rules import ScreenRule, load_rules, screen_version
from toolscout.indexing.screen.texts import END, UNREAD, Reading, Texts, readings, visible
from toolscout.models import Finding, Tool

__all__ = ["LEARNED", "load_rules", "quarantines", "screen_tool", "screen_version"]

_PASSAGE_CHARS = 200
_TOO_MUCH = "too-much"
_NO_DOUBT = frozenset({"command", "role-marker", "hidden-markup", "addressed-to-model"})


def screen_tool(tool: Tool) -> tuple[Finding, ...]:
    """Return at most one finding for each rule, and one of the classifier. Those that quarantine come first.

    What the classifier suspects in a tool of a trusted server is a notice, unless the score is high. The classifier
    also confirms the rules that look for words: where it is certain that no passage of a definition is an order, such
    a finding is a notice.
    """
    rule_set, weights = load_rules(), load_weights()
    texts = Texts(tool)
    findings: dict[str, Finding] = {}
    unread = next(rule for rule in rule_set.rules if rule.id == _TOO_MUCH)
    if unread.raw and (span := unread.raw(texts.raw)):
        return (_finding(unread, texts, Reading("", texts.raw, frozenset()), span),)
    for rule in rule_set.rules:
        if rule.raw and (span := rule.raw(texts.raw)):
            findings[rule.id] = _finding(rule, texts, Reading("", texts.raw, frozenset()), span)
    worded: dict[str, Finding] = {}
    paths = texts.paths
    best: OrderEvidence | None = None
    for reading in readings(texts.raw, rule_set.stems):
        if reading.how == UNREAD:
            findings[_TOO_MUCH] = _finding(unread, texts, reading, (0, 0))
        for number in rule_set.candidates(reading.stems, reading.text):
            rule, pattern = rule_set.patterns[number]
            if rule.id not in worded and (span := pattern.find(reading.stems, reading.text)):
                worded[rule.id] = _finding(rule, texts, reading, span)
        strings = reading.text.split(END)
        evidence = find_order(strings, paths, subject_of_strings(strings, paths))
        if evidence and (best is None or evidence.score > best.score):
            best = evidence
    if best and best.score >= weights.untrusted:
        severe = not tool.trusted or best.score >= weights.trusted
        findings[LEARNED] = Finding(
            rule=LEARNED,
            reason=best.reason,
            where=texts.where(best.string),
            excerpt=visible(best.text, _PASSAGE_CHARS),
            severity="quarantine" if severe else "notice",
        )
    if best and best.score < weights.certain and texts.raw.isascii():
        worded = {name: _doubt(finding) for name, finding in worded.items()}
    findings |= worded
    return tuple(sorted(findings.values(), key=_gravest_first))


def _doubt(finding: Finding) -> Finding:
    """Turn a finding in plain words into a notice. What is encoded or imitates markup is no slip of the pen."""
    certain = finding.rule in _NO_DOUBT or finding.reason.endswith(").")
    return finding if certain else replace(finding, severity="notice")


def _gravest_first(finding: Finding) -> tuple[bool, bool, str]:
    return finding.severity != "quarantine", finding.rule == LEARNED, finding.rule


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
