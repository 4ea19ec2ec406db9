"""A long request has several needs: cut it where one need ends and the next begins, by rule and with restraint."""

from __future__ import annotations

import re

from toolscout.text import telling_terms

MAX_CLAUSES = 6
"""The most parts that are searched for by themselves; the shortest of more are left to the whole request."""

MIN_WORDS = 8
"""A request shorter than this, counted in words, is one need."""

MIN_TERMS = 2
"""A part with fewer telling words is no need of its own: it joins the part before it."""

_VERBS = (
    "add|analy[sz]e|apply|arrange|assess|book|build|buy|calculate|call|cancel|change|check|compare|compile|compute|"
    "convert|copy|count|create|delete|deploy|describe|design|determine|download|draw|edit|email|estimate|evaluate|"
    "execute|explain|export|extract|fetch|fill|filter|find|gather|generate|get|give|identify|import|inform|insert|"
    "install|inspect|launch|list|locate|look|make|manage|measure|merge|modify|monitor|move|notify|obtain|open|order|"
    "organi[sz]e|perform|pick|place|play|post|predict|process|provide|publish|pull|purchase|push|query|read|recommend|"
    "record|register|remove|rename|request|reserve|restart|retrieve|return|review|rotate|run|save|scan|schedule|search|"
    "select|send|set|share|show|solve|sort|start|stop|store|submit|suggest|summari[sz]e|tell|test|track|transfer|"
    "translate|turn|update|upload|validate|verify|view|write"
)
QUOTED = re.compile(r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|(?<!\w)'[^'\n]{1,200}'(?!\w)|`[^`\n]{1,200}`")
_OBJECTS = "me|us|the|a|an|my|our|its|their|all|any|some|for|if|whether|how|what|him|her|them|information|details"
_SEQUELS = "then|also|additionally|afterwards?|after that|finally|lastly|furthermore|moreover"
_BORDER = re.compile(
    r"(?:(?<=[.!?;])|(?<=[.!?]\")|(?<=[.!?]'))\s+"  # sentences
    r"|\s*\n+\s*"
    r"|(?<=\s)(?:\(?\d\)|\d\.)\s+"  # numbered needs
    rf"|[,;]\s+(?:and\s+)?(?:{_SEQUELS}|next|plus|second|third)\b,?\s+"
    rf"|\s+and\s+(?:{_SEQUELS})\b,?\s+"
    rf"|,\s+(?:and|or|but)\s+(?=(?:please\s+)?(?:{_VERBS})\b)"
    rf"|\s+and\s+(?=(?:please\s+)?(?:{_VERBS})\s+(?:{_OBJECTS})\b)",
    re.IGNORECASE,
)
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|st|no|inc|ltd|approx)\.$", re.IGNORECASE)


def split_clauses(text: str) -> tuple[str, ...]:
    """Return the separate needs of a request in order, or nothing when it has only one."""
    if len(text.split()) < MIN_WORDS:
        return ()
    parts = _joined(_cut(text))
    if len(parts) < 2:
        return ()
    if len(parts) > MAX_CLAUSES:
        longest = sorted(range(len(parts)), key=lambda place: -len(parts[place]))[:MAX_CLAUSES]
        parts = [parts[place] for place in sorted(longest)]
    return tuple(parts)


def _cut(text: str) -> list[str]:
    """Cut at every border outside of quotations."""
    quoted = [found.span() for found in QUOTED.finditer(text)]
    parts, start = [], 0
    for border in _BORDER.finditer(text):
        inside = any(left < border.start() < right and border.end() < right for left, right in quoted)
        if inside or _ABBREVIATION.search(text, start, border.start()):
            continue
        parts.append(text[start : border.start()])
        start = border.end()
    return [*parts, text[start:]]


def _joined(parts: list[str]) -> list[str]:
    """Drop what says nothing, and join to its neighbour what is too short to stand alone."""
    joined: list[str] = []
    for part in parts:
        count = len(telling_terms(part))
        if count >= MIN_TERMS or (count and not joined):
            joined.append(part.strip())
        elif count:
            joined[-1] = f"{joined[-1]} {part.strip()}"
    return joined
