"""JSON as editors keep it: comments and trailing commas are read, and one value can be replaced where it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\r\n]*|/\*.*?\*/', re.S)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|(?<=[^ \t\r\n\[{,:])[ \t\r\n]*,(?=[ \t\r\n]*[}\]])', re.S)
_SPACE = re.compile(r"[ \t\r\n]*")
_SEEN = re.compile(r"[^\r\n]")
_DECODER = json.JSONDecoder()


def read_jsonc(text: str) -> Any:
    """Parse JSON that may have comments and trailing commas; raise ValueError as `json.loads` does."""
    return json.loads(plain_json(text))


def plain_json(text: str) -> str:
    """Blank out comments and trailing commas: every other character stays at its line and column."""
    return _TRAILING_COMMA.sub(_blanked, without_comments(text))


def without_comments(text: str) -> str:
    """Blank out comments alone."""
    return _COMMENT.sub(_blanked, text)


def value_at(values: Any, path: Sequence[str]) -> Any:
    """Return what stands at a path of keys, None when nothing does."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def find_value(plain: str, path: Sequence[str]) -> tuple[int, int] | None:
    """Return where the value at a path of keys begins and ends in a text without comments."""
    at = _skip(plain, 0)
    span: tuple[int, int] | None = (at, len(plain.rstrip()))
    for key in path:
        span = _member(plain, at, key)
        if span is None:
            return None
        at = span[0]
    return span


def replace_value(text: str, path: Sequence[str], value: Any) -> str:
    """Write another value at a path that is there; all that stands around it stays, comments included."""
    span = find_value(plain_json(text), path)
    if span is None:
        raise KeyError(path[-1])
    start, end = span
    line = text[text.rfind("\n", 0, start) + 1 : start]
    margin = line[: len(line) - len(line.lstrip())]
    step = "\t" if "\t" in margin else " " * (len(margin) // len(path) or 2)
    written = to_json(value, step).replace("\n", "\n" + margin)
    if "\r\n" in text:
        written = written.replace("\n", "\r\n")
    return text[:start] + written + text[end:]


def to_json(value: Any, indent: str = "  ") -> str:
    """Write JSON for people; only what UTF-8 cannot hold is escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text if text.isascii() or not re.search(r"[\ud800-\udfff]", text) else json.dumps(value, indent=indent)


def _member(plain: str, at: int, key: str) -> tuple[int, int] | None:
    """Find a member of the object that begins here; of two with one name the last counts, as for every parser."""
    found = None
    if plain[at] != "{":
        return None
    at = _skip(plain, at + 1)
    while plain[at] != "}":
        name, at = _DECODER.raw_decode(plain, at)
        start = _skip(plain, _skip(plain, at) + 1)
        _, end = _DECODER.raw_decode(plain, start)
        if name == key:
            found = (start, end)
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _blanked(found: re.Match[str]) -> str:
    return found[1] or _SEEN.sub(" ", found[0])
