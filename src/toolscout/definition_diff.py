"""Differences between two definitions: field by field, line by line, with invisible characters made visible."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher, unified_diff
from typing import Any, Literal

from toolscout.models import Change

_CONTEXT = 2
_SHORT = 3
_WIDTH = 110
_HUNK = re.compile(r"@@ -([0-9]+)")
_SENTENCE = re.compile(r"(?<=[.;!?] )(?=\S)")

Kind = Literal["same", "removed", "added", "gap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a diff. `marked` are the spans that the other definition does not have."""

    kind: Kind
    text: str
    marked: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDiff:
    """The diff of one field of a definition."""

    field: str
    lines: tuple[DiffLine, ...]


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldDiff]:
    """Return a diff of each field that differs, in the order of the definition."""
    names = dict.fromkeys([*after, *before])
    pairs = ((name, before.get(name), after.get(name)) for name in names)
    return [FieldDiff(field=name, lines=tuple(_diff(old, new))) for name, old, new in pairs if old != new]


def unified(diffs: list[FieldDiff]) -> list[str]:
    """Return a diff as plain lines, for programs."""
    sign = {"same": " ", "removed": "-", "added": "+", "gap": "@"}
    return [
        text for item in diffs for text in (f"# {item.field}", *(sign[line.kind] + line.text for line in item.lines))
    ]


def state_of(change: Change) -> str:
    """Return the state of a tool in one or two words."""
    if change.verdict == "kept_out":
        return "kept out"
    if change.quarantine_reason:
        poisoned = any(item.severity == "quarantine" for item in change.findings)
        return "withheld" if change.changed and not poisoned else "quarantined"
    return "changed"


def change_row(change: Change) -> dict[str, Any]:
    """Return a change as JSON, with the diff of the two definitions."""
    return {
        "key": change.key,
        "version": change.version,
        "approve": change.approval,
        "tenant": change.scope.tenant,
        "user": change.scope.owner,
        "state": state_of(change),
        "waits": change.waits,
        "held": change.quarantine_reason,
        "changed": change.changed,
        "pinned_at": datetime.fromtimestamp(change.at, UTC).isoformat(timespec="seconds"),
        "findings": [asdict(item) for item in change.findings],
        "before": change.before,
        "after": change.after,
        "diff": unified(compare(change.before, change.after)) if change.before is not None else [],
    }


def visible(char: str) -> str:
    """Return a visible form of a character: one that is not printable is escaped."""
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


def _diff(old: Any, new: Any) -> list[DiffLine]:
    """Compare two values line by line, or as JSON if they have the same lines."""
    lines = list(_line_diff(_lines(old), _lines(new)))
    return lines or list(_marked_lines(json.dumps(old, ensure_ascii=False), json.dumps(new, ensure_ascii=False)))


def _lines(value: Any) -> list[str]:
    """Split a value into lines: a long text by sentences, anything else as indented JSON."""
    if value is None or value in ("", {}, []):
        return []
    if not isinstance(value, str):
        return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines()
    return [part for line in value.split("\n") for part in _sentences(line)]


def _sentences(line: str) -> list[str]:
    """Split a long line after each sentence, so that a change in one sentence does not mark the others."""
    return _SENTENCE.split(line) if len(line) > _WIDTH else [line]


def _line_diff(before: list[str], after: list[str]) -> Iterator[DiffLine]:
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
                yield DiffLine(kind="same", text=text[1:])
            elif int(hunk[1]) > 1:
                yield DiffLine(kind="gap", text="...")
    yield from _block(removed, added)


def _block(removed: list[str], added: list[str]) -> Iterator[DiffLine]:
    """Pair removed lines with added ones, and mark in each what the other does not have."""
    pairs = [_marked_lines(old, new) for old, new in zip(removed, added, strict=False)]
    yield from (old for old, _ in pairs)
    yield from (DiffLine(kind="removed", text=_visible_text(text)) for text in removed[len(pairs) :])
    yield from (new for _, new in pairs)
    yield from (DiffLine(kind="added", text=_visible_text(text)) for text in added[len(pairs) :])


def _marked_lines(old: str, new: str) -> tuple[DiffLine, DiffLine]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    blocks = [step for step in matcher.get_opcodes() if step[0] != "equal"]
    return (
        _line("removed", old, [(start, end) for _, start, end, _, _ in blocks]),
        _line("added", new, [(start, end) for _, _, _, start, end in blocks]),
    )


def _line(kind: Kind, text: str, spans: list[tuple[int, int]]) -> DiffLine:
    """Return a line with marked spans. Characters that may look alike show their code points."""
    output, marks, at = "", [], 0
    for start, end in spans:
        output += _visible_text(text[at:start])
        span = text[start:end]
        begin = len(output)
        output += _with_code_points(span) if len(span) <= _SHORT else _visible_text(span)
        if end > start:
            marks.append((begin, len(output)))
        at = end
    return DiffLine(kind=kind, text=output + _visible_text(text[at:]), marked=tuple(marks))


def _visible_text(text: str) -> str:
    return "".join(map(visible, text))


def _with_code_points(span: str) -> str:
    return "".join(char if char.isascii() else f"{visible(char)}<U+{ord(char):04X}>" for char in span)
