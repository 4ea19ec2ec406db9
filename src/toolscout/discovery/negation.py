"""Negation: the parts that a request rules out are cut before the search, since words and vectors know no "not"."""

from __future__ import annotations

import re

from toolscout.text import CONTRASTS, NEGATIONS, QUOTED, telling_terms

_LEAST_TERMS = 2
"""How many telling words must remain, so that the request still says what it asks for."""

_REST = r"(?:(?![,;]|[.!?](?:\s|$)).)+"
_NOT_A_NEGATION = r"(?!forget|hesitate|mind|worry|only|just|yet|miss)"
"""Words that turn a negation into its opposite, as in "don't forget"."""
_ACTIONS = (
    "adding|changing|closing|creating|deleting|downloading|editing|installing|losing|merging|modifying|moving|notifying|"
    "opening|overwriting|posting|publishing|removing|renaming|restarting|running|saving|sending|sharing|stopping|"
    "touching|updating|uploading|writing"
)
_NEGATED = re.compile(
    rf"(?:^|[,;.!?]\s*|\s+(?:but|and)\s+)(?:(?:please|but|and)\s+)?(?:{NEGATIONS})\s+{_NOT_A_NEGATION}{_REST}"
    rf"|[,;]\s*(?:but\s+)?not\s+{_NOT_A_NEGATION}{_REST}"
    rf"|,?\s+without\s+(?:{_ACTIONS})\b(?:{_REST})?"
    rf"|,?\s+(?:{CONTRASTS})\s+{_REST}",
    re.IGNORECASE,
)


def split_negations(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the request without the parts that it rules out, and these parts.

    >>> split_negations("send the email, do not save a draft")
    ('send the email', ('do not save a draft',))
    >>> split_negations("find files not modified since Monday")
    ('find files not modified since Monday', ())
    """
    quotations = [quotation.span() for quotation in QUOTED.finditer(text)]
    excluded: list[str] = []

    def cut(match: re.Match[str]) -> str:
        if any(match.start() < right and left < match.end() for left, right in quotations):
            return match[0]
        excluded.append(match[0].strip(" ,;.!?"))
        return " "

    rest = _NEGATED.sub(cut, text).strip(" ,;")
    if not excluded or len(telling_terms(rest)) < _LEAST_TERMS:
        return text, ()
    return rest, tuple(excluded)
