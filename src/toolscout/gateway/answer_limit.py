"""The byte limit of results for the gateway's own answers: what does not fit is shown in less detail, with a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from toolscout.compact_json import byte_size, compact_json
from toolscout.models import Answer, Detail, ToolMatch, answer_text
from toolscout.text import tokens_of

_NOTE_BYTES = 600
_MOST_BYTES = 10
"""How many bytes a character of a hit has at most. It is written twice, and in the text with backslashes."""

_MORE: dict[Detail, tuple[Detail, ...]] = {"full": ("full", "brief"), "brief": ("brief",), "minimal": ()}
"""What is tried for a hit, by the detail that was asked for, before it is only named."""


def fit_answer(answer: Answer, max_bytes: int) -> Answer:
    """Show the first hits in the detail asked for as long as they fit, and less of the others."""
    if sum(match.json_size for match in answer) * _MOST_BYTES + _NOTE_BYTES <= max_bytes:
        return answer
    frame = replace(answer, matches=())
    frame_bytes = _bytes(frame)

    def cost(match: ToolMatch) -> int:
        return _bytes(replace(frame, matches=(match,))) - frame_bytes

    fitted = [replace(match, detail="minimal") for match in answer]
    costs = [cost(match) for match in fitted]
    room = max_bytes - frame_bytes - _NOTE_BYTES
    del fitted[sum(total <= room for total in accumulate(costs)) :]
    room -= sum(costs[: len(fitted)])
    for place, match in enumerate(answer.matches[: len(fitted)]):
        for level in _MORE[match.detail]:
            shown = replace(match, detail=level)
            more = cost(shown) - costs[place]
            if more <= room:
                fitted[place], room = shown, room - more
                break
    return _with_note(answer, fitted, max_bytes)


def fit_hits(hits: Sequence[Any], max_bytes: int) -> tuple[list[Any], list[str]]:
    """Return the first hits that fit as structured content and as text, and a note if there are more."""
    costs = (byte_size(hit) + byte_size(compact_json(hit).decode()) for hit in hits)
    fitted = list(hits[: sum(total <= max_bytes - _NOTE_BYTES for total in accumulate(costs))])
    left = len(hits) - len(fitted)
    return fitted, [_note(f"{left} of {len(hits)} hits are left out", max_bytes)] if left else []


def _with_note(answer: Answer, fitted: Sequence[ToolMatch], max_bytes: int) -> Answer:
    """Say how many hits are not shown as asked for, if any, and count the tokens of those that are shown."""
    left = len(answer) - len(fitted)
    less = sum(shown.detail != match.detail for shown, match in zip(fitted, answer, strict=False))
    if not left and not less:
        return answer
    parts = [f"{left} of {len(answer)} hits are left out"] if left else []
    if less:
        parts.append(
            f"{less} are shown in less detail"
            if left
            else f"{less} of {len(answer)} definitions are shown in less detail"
        )
    note = _note(" and ".join(parts), max_bytes)
    tokens = tokens_of(sum(match.json_size for match in fitted) + max(len(fitted) - 1, 0) + len("[]"))
    saved = answer.metadata.tokens_saved + max(answer.metadata.tokens - tokens, 0)
    metadata = replace(answer.metadata, returned=len(fitted), tokens=tokens, tokens_saved=saved)
    return replace(answer, matches=tuple(fitted), metadata=metadata, suggestions=(note, *answer.suggestions))


def _note(what: str, max_bytes: int) -> str:
    return f"{what}, because an answer has at most {max_bytes:,} bytes. Ask for fewer at once."


def _bytes(answer: Answer) -> int:
    return byte_size(answer.to_dict()) + byte_size(answer_text(answer))
