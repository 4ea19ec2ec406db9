"""What a request says it does not want: cut out before it is searched for, since words and vectors know no "not"."""

from __future__ import annotations

import re

from toolscout.words import telling_terms

_LEAST_LEFT = 2
"""How many telling words must be left, so that the request still says what it wants."""

_REFUSAL = re.compile(
    r"(?:^|[,;.!?]\s*|\s+(?:but|and)\s+)(?:please\s+)?(?:but\s+|and\s+)?(?:do not|don['’]?t|never)\s+[^,;.!?]+"
    r"|[,;]\s*(?:but\s+)?not\s+[^,;.!?]+"
    r"|,?\s+without\s+\w+ing\b[^,;.!?]*"
    r"|,?\s+(?:instead of|rather than)\s+[^,;.!?]+",
    re.IGNORECASE,
)


def without_refusals(text: str) -> str:
    """Return the request without what it rules out: `list users, not groups` asks for users.

    >>> without_refusals("send the email, do not save a draft")
    'send the email'
    >>> without_refusals("find files not modified since Monday")
    'find files not modified since Monday'
    """
    left = _REFUSAL.sub(" ", text).strip(" ,;")
    return left if left != text.strip(" ,;") and len(telling_terms(left)) >= _LEAST_LEFT else text
