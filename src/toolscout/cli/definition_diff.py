"""Two definitions side by side: field by field, line by line, and with what the eye would miss spelt out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from typing import Any, Literal

_CONTEXT = 2
_BRIEF = 3
_WIDTH = 110
_HUNK = re.compile(r"@@ -([0-9]+)")
_SENTENCE = re.compile(r"(?<=[.;!?] )(?=\S)")

Kind = Literal["same", "removed", "added", "gap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a difference; `marked` are the spans of it that the other side does not have."""

    kind: Kind
    text: str
    marked: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """What happened to one field of a definition."""

    field: str
    lines: tuple[Line, ...]


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    """Return the fields that differ, in the order of the definition."""
    names = dict.fromkeys([*after, *before])
    pairs = ((name, before.get(name), after.get(name)) for name in names)
    return [FieldChange(field=name, lines=tuple(_differing(one, other))) for name, one, other in pairs if one != other]


def unified(changes: list[FieldChange]) -> list[str]:
    """Write a difference as plain lines, for programs."""
    sign = {"same": " ", "removed": "-", "added": "+", "gap": "@"}
    return [
        text for item in changes for text in (f"# {item.field}", *(sign[line.kind] + line.text for line in item.lines))
    ]


def plain(char: str) -> str:
    """Write a character so that it is seen: what does not print is escaped."""
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


def _differing(one: Any, other: Any) -> list[Line]:
    """Hold two values against one another, as JSON where their lines are the same."""
    found = list(_paired(_lines(one), _lines(other)))
    return found or list(_marked(json.dumps(one, ensure_ascii=False), json.dumps(other, ensure_ascii=False)))


def _lines(value: Any) -> list[str]:
    """Break a value into lines: a text where it is long, anything else as indented JSON."""
    if value is None or value in ("", {}, []):
        return []
    if not isinstance(value, str):
        return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines()
    return [part for line in value.split("\n") for part in _folded(line)]


def _folded(line: str) -> list[str]:
    """Break a long line after each sentence, so that a change in one of them leaves the others as they are."""
    return _SENTENCE.split(line) if len(line) > _WIDTH else [line]


def _paired(before: list[str], after: list[str]) -> Iterator[Line]:
    removed: list[str] = []
    added: list[str] = []
    for text in list(unified_diff(before, after, lineterm="", n=_CONTEXT))[2:]:
        if text.startswith("-"):
            if added:
                yield from _block(removed, added)
                removed, added = [], []
            removed.append(text[1:])
        elif text.startswith("+"):
            added.append(text[1:])
        else:
            yield from _block(removed, added)
            removed, added = [], []
            hunk = _HUNK.match(text)
            if hunk is None:
                yield Line(kind="same", text=text[1:])
            elif int(hunk[1]) > 1:
                yield Line(kind="gap", text="...")
    yield from _block(removed, added)


def _block(removed: list[str], added: list[str]) -> Iterator[Line]:
    """Pair the lines that went with those that came, and mark in each what the other lacks."""
    pairs = [_marked(one, other) for one, other in zip(removed, added, strict=False)]
    yield from (one for one, _ in pairs)
    yield from (Line(kind="removed", text=_seen(text)) for text in removed[len(pairs) :])
    yield from (other for _, other in pairs)
    yield from (Line(kind="added", text=_seen(text)) for text in added[len(pairs) :])


def _marked(one: str, other: str) -> tuple[Line, Line]:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    blocks = [step for step in matcher.get_opcodes() if step[0] != "equal"]
    return (
        _line("removed", one, [(start, end) for _, start, end, _, _ in blocks]),
        _line("added", other, [(start, end) for _, _, _, start, end in blocks]),
    )


def _line(kind: Kind, text: str, spans: list[tuple[int, int]]) -> Line:
    """Write a line with its spans; a short one in letters beyond ASCII names them, as they may look like others."""
    shown, marks, at = "", [], 0
    for start, end in spans:
        shown += _seen(text[at:start])
        span = text[start:end]
        begin = len(shown)
        shown += _named(span) if len(span) <= _BRIEF else _seen(span)
        if end > start:
            marks.append((begin, len(shown)))
        at = end
    return Line(kind=kind, text=shown + _seen(text[at:]), marked=tuple(marks))


def _seen(text: str) -> str:
    return "".join(map(plain, text))


def _named(span: str) -> str:
    return "".join(char if char.isascii() else f"{plain(char)}<U+{ord(char):04X}>" for char in span)
