"""What the recent conversation adds to a request: the user's last words before it, as plain texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

RECENT = 2
"""How many of the user's earlier messages are looked at."""

_LONGEST = 1_000


def recent_texts(messages: Iterable[Any], query: str) -> list[str]:
    """Return the texts of the user's last messages other than the query itself, the latest first."""
    said = [text for message in messages if _part(message, "role") == "user" and (text := text_of(message))]
    earlier = [text for text in said if text != query.strip()[:_LONGEST]]
    return list(dict.fromkeys(reversed(earlier)))[:RECENT]


def text_of(message: Any) -> str:
    """Return what a message says, whether its content is a text or a list of parts; images and results say nothing."""
    content = _part(message, "content")
    parts: Sequence[Any] = [content] if isinstance(content, str) else content if isinstance(content, Sequence) else ()
    texts = [part if isinstance(part, str) else _part(part, "text") for part in parts]
    return " ".join(text.strip() for text in texts if isinstance(text, str)).strip()[:_LONGEST]


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
