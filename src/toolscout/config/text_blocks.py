"""Blocks of lines in a config file, cut out and replaced. Every other line stays as it is, comments included."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'')
_COMMENT = re.compile(r"(?:^|\s)#", re.M)


def content_end(lines: Sequence[str], start: int, end: int) -> int:
    """Return where a block ends without the blank lines and comments after it: they belong to what follows."""
    while end > start + 1 and is_remark(lines[end - 1]):
        end -= 1
    return end


def is_remark(line: str) -> bool:
    """Return whether a line is blank or a comment."""
    return not line.strip() or line.lstrip().startswith("#")


def contain_comment(lines: Sequence[str]) -> bool:
    """Return whether there is a comment in lines of TOML or YAML."""
    return bool(_COMMENT.search(_QUOTED.sub("", "".join(lines))))


def replace_blocks(lines: Sequence[str], blocks: Sequence[tuple[int, int]], new: str, at: int) -> str:
    """Cut blocks of lines out, and put a new text before the line `at`. No gap becomes larger by it."""
    kept: list[str] = []
    cut = {number for start, end in blocks for number in range(start, end)}
    ends = {end for _, end in blocks}
    skipping = False
    for number, line in enumerate((*lines, "")):
        if number == at and new:
            if kept and not kept[-1].endswith("\n"):
                kept[-1] += "\n"
            kept.append(new)
        skipping = not line.strip() and (skipping or number in ends) and _is_gap(kept)
        if number not in cut and not skipping:
            kept.append(line)
    return "".join(kept)


def _is_gap(kept: Sequence[str]) -> bool:
    """Return whether the text ends with a blank line, or has not begun."""
    return not kept or not kept[-1].strip() or kept[-1].endswith("\n\n")
