"""What a request says it does not want: cut out before it is searched for, since words and vectors know no "not"."""

from __future__ import annotations

import re

from toolscout.discovery.clauses import QUOTED
from toolscout.text import telling_terms

_LEAST_LEFT = 2
"""How many telling words must be left, so that the request still says what it wants."""

_REST = r"(?:(?![,;]|[.!?](?:\s|$)).)+"
_WANTED = r"(?!forget|hesitate|mind|worry|only|just|yet|miss)"
_UNDONE = (
    "adding|changing|closing|creating|deleting|downloading|editing|installing|losing|merging|modifying|moving|notifying|"
    "opening|overwriting|posting|publishing|removing|renaming|restarting|running|saving|sending|sharing|stopping|"
    "touching|updating|uploading|writing"
)
_REFUSAL = re.compile(
    rf"(?:^|[,;.!?]\s*|\s+(?:but|and)\s+)(?:(?:please|but|and)\s+)?(?:do not|don['’]?t|never)\s+{_WANTED}{_REST}"
    rf"|[,;]\s*(?:but\s+)?not\s+{_WANTED}{_REST}"
    rf"|,?\s+without\s+(?:{_UNDONE})\b(?:{_REST})?"
    rf"|,?\s+(?:instead of|rather than)\s+{_REST}",
    re.IGNORECASE,
)


def without_refusals(text: str) -> str:
    """Return the request without what it rules out: `list users, not groups` asks for users.

    >>> without_refusals("send the email, do not save a draft")
    'send the email'
    >>> without_refusals("find files not modified since Monday")
    'find files not modified since Monday'
    """
    quoted = [found.span() for found in QUOTED.finditer(text)]

    def cut(found: re.Match[str]) -> str:
        spared = any(found.start() < right and left < found.end() for left, right in quoted)
        return found[0] if spared else " "

    left = _REFUSAL.sub(cut, text).strip(" ,;")
    return left if left != text.strip(" ,;") and len(telling_terms(left)) >= _LEAST_LEFT else text
