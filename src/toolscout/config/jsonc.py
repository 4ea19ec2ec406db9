"""JSON with comments and trailing commas, as editors write it: reading, and replacing one value in place."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

# A text or comment that does not end reaches to the end of the file. Otherwise each quote in it would be a new start.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*(?:"|\\?\Z)|/\*(?:(?!\*/).)*\Z)|//[^\r\n]*|/\*.*?\*/', re.S)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*(?:"|\\?\Z))|(?<=[^ \t\r\n\[{,:])[ \t\r\n]*,(?=[ \t\r\n]*[}\]])', re.S)
_SPACE = re.compile(r"[ \t\r\n]*")
_NOT_LINE_BREAK = re.compile(r"[^\r\n]")
_DECODER = json.JSONDecoder()


def read_jsonc(text: str) -> Any:
    """Parse JSON with comments and trailing commas. Raise ValueError as `json.loads` does."""
    return json.loads(plain_json(text))


def plain_json(text: str) -> str:
    """Replace comments and trailing commas with spaces. All other characters keep their line and column."""
    return _TRAILING_COMMA.sub(_to_spaces, without_comments(text))


def without_comments(text: str) -> str:
    """Replace comments with spaces."""
    return _COMMENT.sub(_to_spaces, text)


def value_at(values: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of keys, or None."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def find_value(plain: str, path: Sequence[str]) -> tuple[int, int] | None:
    """Return the start and end of the value at a path of keys, in a text without comments."""
    at = _skip(plain, 0)
    span: tuple[int, int] | None = (at, len(plain.rstrip()))
    for key in path:
        span = _member(plain, at, key)
        if span is None:
            return None
        at = span[0]
    return span


def replace_value(text: str, path: Sequence[str], value: Any) -> str:
    """Replace the value at an existing path. Everything around it is kept, including comments."""
    span = find_value(plain_json(text), path)
    if span is None:
        raise KeyError(path[-1])
    start, end = span
    line = text[text.rfind("\n", 0, start) + 1 : start]
    margin = line[: len(line) - len(line.lstrip())]
    step = "\t" if "\t" in margin else " " * (len(margin) // len(path) or 2)
    new_text = to_json(value, step).replace("\n", "\n" + margin)
    if "\r\n" in text:
        new_text = new_text.replace("\n", "\r\n")
    return text[:start] + new_text + text[end:]


def add_member(text: str, path: Sequence[str], key: str, value: Any) -> str:
    """Add a member at the end of the object at a path, which exists. Everything around it is kept."""
    plain = plain_json(text)
    span = find_value(plain, path)
    if span is None or plain[span[0]] != "{":
        raise KeyError(path[-1])
    close = span[1] - 1
    last = len(plain[:close].rstrip())
    line = text[text.rfind("\n", 0, span[0]) + 1 : span[0]]
    margin = line[: len(line) - len(line.lstrip())]
    step = "\t" if "\t" in margin else "  "
    inner = margin + step
    member = f"{to_json(key)}: {to_json(value, step)}".replace("\n", "\n" + inner)
    comma = "," if plain[last - 1] not in "{," and text[last : last + 1] != "," else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    rest = text[last:close].rstrip()
    added = f"{comma}{rest}\n{inner}{member}\n{margin}".replace("\n", newline)
    return text[:last] + added + text[close:]


def to_json(value: Any, indent: str = "  ") -> str:
    """Return indented JSON. Only text that UTF-8 cannot encode is escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text if text.isascii() or not re.search(r"[\ud800-\udfff]", text) else json.dumps(value, indent=indent)


def _member(plain: str, at: int, key: str) -> tuple[int, int] | None:
    """Find a member of the object that starts here. If a name occurs twice, the last one counts, as in JSON parsers."""
    span = None
    if plain[at] != "{":
        return None
    at = _skip(plain, at + 1)
    while plain[at] != "}":
        name, at = _DECODER.raw_decode(plain, at)
        start = _skip(plain, _skip(plain, at) + 1)
        _, end = _DECODER.raw_decode(plain, start)
        if name == key:
            span = (start, end)
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return span


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _to_spaces(match: re.Match[str]) -> str:
    return match[1] or _NOT_LINE_BREAK.sub(" ", match[0])
