"""Clauses: the separate needs of a request, each of which is searched for by itself."""

from __future__ import annotations

import re

from toolscout.text import QUOTED, telling_terms
from toolscout.verbs import wanted_action

MAX_CLAUSES = 6
"""The most clauses that are searched for by themselves. The shortest of more count only in the whole request."""
MIN_WORDS = 8
"""A request with fewer words is one need."""
MIN_TERMS = 2
"""A part with fewer telling words is no need of its own. It is joined to the part before it."""

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
_OBJECTS = (
    "me|us|the|a|an|my|our|it|its|their|this|that|all|any|some|for|if|whether|how|what|him|her|them|information|details"
)
_SEQUELS = "then|also|additionally|afterwards?|after that|finally|lastly|furthermore|moreover"
_MORE_VERBS = (
    "answer|append|approve|archive|assign|attach|block|boot|clone|close|collect|commit|crawl|decline|deny|disable|"
    "dismiss|do|enable|file|flag|forward|grant|have|invite|kick|let|log|mark|mute|pause|ping|point|put|react|refresh|"
    "reject|release|remind|rename|reopen|reply|restore|resume|revoke|ring|roll|scale|screenshot|silence|spin|stage|"
    "suspend|switch|sync|take|trigger|try|unblock|use"
)
"""Verbs that begin an order, and too often stand inside of one to divide it."""
_BORDER = re.compile(
    r"(?:(?<=[.!?;])|(?<=[.!?]\")|(?<=[.!?]'))\s+"  # sentences
    r"|\s*\n+\s*"
    r"|(?<=\s)(?:\(?\d\)|\d\.)\s+"  # numbered needs
    rf"|[,;]\s+(?:and\s+)?(?:{_SEQUELS}|next|plus|second|third)\b,?\s+"
    rf"|\s+and\s+(?:{_SEQUELS})\b,?\s+"
    rf"|,\s+(?:and|or|but)\s+(?=(?:please\s+)?(?:{_VERBS})\b)"
    rf"|\s+and\s+(?=(?:please\s+)?(?:{_VERBS})\s+(?:{_OBJECTS})\b)"
    rf"|(?P<next_order>,\s+(?=(?:please\s+)?(?:(?:{_VERBS})\s+\w|(?:{_MORE_VERBS})\s+(?:{_OBJECTS})\b))"
    rf"|\s+(?:and|then)\s+(?=(?:{_VERBS})\s+\w)|\s+\+\s+(?=(?:{_VERBS}|{_MORE_VERBS})\s))",
    re.IGNORECASE,
)
"""Where a need ends. `next_order` ends one only after an order: "In the sheet, turn it red" is one need."""
_WISH = re.compile(
    r"\b(?:please|(?:can|could|would|will) you|(?:i|we) (?:need|want)|(?:i|we)(?:'d| would) (?:like|love)|help me|"
    r"let's)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    rf"(?:^|[,:;–]\s|\s-\s)(?:(?:and|then|also|now|so|first|finally),? )?(?:{_VERBS}|{_MORE_VERBS})\s+\w", re.IGNORECASE
)
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|st|no|inc|ltd|approx)\.$", re.IGNORECASE)


def asks(sentence: str) -> bool:
    """Tell whether a sentence is an order or a wish."""
    return bool(_WISH.search(sentence) or _ORDER.search(sentence) or wanted_action(" ".join(sentence.split()[:1])))


def split_clauses(text: str) -> tuple[str, ...]:
    """Return the separate needs of a long request in order, or nothing if it has only one."""
    if len(text.split()) < MIN_WORDS:
        return ()
    parts = _join_short(_cut(text))
    if len(parts) < 2:
        return ()
    if len(parts) > MAX_CLAUSES:
        best = sorted(range(len(parts)), key=lambda place: (not asks(parts[place]), -len(parts[place])))[:MAX_CLAUSES]
        parts = [parts[place] for place in sorted(best)]
    return tuple(parts)


def _cut(text: str) -> list[str]:
    """Cut at every border outside of quotations."""
    quotations = [quotation.span() for quotation in QUOTED.finditer(text)]
    parts, start = [], 0
    for border in _BORDER.finditer(text):
        inside = any(left < border.start() < right and border.end() < right for left, right in quotations)
        goes_on = border["next_order"] is not None and not asks(text[start : border.start()])
        if inside or goes_on or _ABBREVIATION.search(text, start, border.start()):
            continue
        parts.append(text[start : border.start()])
        start = border.end()
    return [*parts, text[start:]]


def _join_short(parts: list[str]) -> list[str]:
    """Drop parts without telling words, and join short ones to the part before them."""
    joined: list[str] = []
    for part in parts:
        count = len(telling_terms(part))
        if count >= MIN_TERMS or (count and not joined):
            joined.append(part.strip())
        elif count:
            joined[-1] = f"{joined[-1]} {part.strip()}"
    return joined
